// Package launch is the body of aws-vpc-cni, the entrypoint and process 1 of the container
// aws-node: it checks the settings, installs the two plugins, starts the daemon, waits
// until that serves, installs the conflist and stays until the daemon ends.
//
// A runtime calls a node's network ready as soon as there is a conflist. So it is installed
// last, and when it is there at the start although no daemon has run since the node
// booted, it is removed: an ADD would find no daemon. Otherwise it is never removed; a restart
// of the daemon is no reason to call a node not ready.
//
// One goroutine, that of Run, decides; see supervise. What the daemon prints to stderr
// passes through, so that its last lines can be logged when it ends. Signals to end are
// handed to the daemon, which saves what it has to; orphans are reaped.
package launch
