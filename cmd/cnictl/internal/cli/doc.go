// Package cli is the basis of the commands: streams, global flags with their environment
// variables and file, errors and exit codes, and the Factory that carries them. The packages
// kubeconfig, access, sweep and follow reach the nodes; output prints.
//
// Commands get a *Factory and write to its streams. They never touch os.Stdout, the
// environment or the clock themselves, and never exit.
package cli
