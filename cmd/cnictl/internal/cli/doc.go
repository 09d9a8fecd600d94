// Package cli is the basis of the commands: streams, the global flags with their
// environment and file, errors and exit codes, and the Factory that carries them.
// Reaching nodes is up to kubeconfig, access, sweep and follow, output to output.
//
// Commands get a *Factory and write to its streams; they never touch os.Stdout, the
// environment or the clock themselves, and never exit.
package cli
