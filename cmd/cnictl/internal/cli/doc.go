// Package cli is the ground the commands stand on: streams, global flags and their
// environment, the way to the nodes, output forms, errors and exit codes.
//
// Commands get a *Factory and write to its streams; they never touch os.Stdout, the
// environment or the clock themselves, and never exit.
package cli
