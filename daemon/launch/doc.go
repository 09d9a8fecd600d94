// Package launch is the body of aws-vpc-cni, the entrypoint and process 1 of the container
// aws-node: it checks the settings, installs the two plugins, starts the daemon, waits
// until it serves, installs the conflist, and stays until the daemon ends.
//
// A runtime considers a node's network ready as soon as a conflist exists, so it is
// installed last. If it exists at the start although no daemon has run since the node
// booted, it is removed: an ADD would find no daemon. Otherwise it is never removed; a
// restart of the daemon does not make the node unready.
//
// One goroutine, Run's, makes all decisions; see supervise. The daemon's stderr passes
// through it, so that its last lines can be logged when it ends. Termination signals are
// forwarded to the daemon, which saves its state; orphans are reaped.
package launch
