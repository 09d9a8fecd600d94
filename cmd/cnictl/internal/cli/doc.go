// Package cli is the ground the commands stand on: streams, the global flags with their
// environment and file, errors and exit codes, and the Factory that carries them. It reaches
// no node and lays out no output: that is for kubeconfig, access, sweep and follow, and for output.
//
// Commands get a *Factory and write to its streams; they never touch os.Stdout, the
// environment or the clock themselves, and never exit.
package cli
