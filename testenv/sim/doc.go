// Package sim runs nodes against a model of everything outside the daemon: EC2, the
// metadata service, the kernel, the checkpoint file, kubelet and the plugin, in virtual
// time and from a seed.
//
// The code under test is the real one: each node has a real [keeper.Keeper] with the real
// planner, address book and reconcile, and its tasks are the real procedures. The model
// replaces vpcapi, imds, hostnet, the file and the shell's goroutines. A procedure is
// sequential code, so each task is a coroutine that resumes when the model answers its
// call. Only one piece of code runs at any time, and the same seed gives the same run on
// any machine.
//
// [Run] plays one seed: pods come and go while calls fail, answers are lost, processes
// die, metadata lags and other people change things ([Scenario]); then the faults end and
// the nodes must settle. The invariants are checked after every event (invariants.go), the
// final state at the end (rest.go).
//
// The model makes these assumptions, on which the daemon may rely: EC2 has carried out or
// dropped a call by the time its client gives up waiting for the answer; EC2's lists show
// a change immediately or, in worlds where they lag, within seconds and before a daemon
// that died restarts; a host route disappears with its link.
//
// A [Fleet] uses the same world for another purpose: many nodes that scale up together,
// without faults except EC2's request limits, running our daemon or upstream's loop as
// capacity/whatif models it (upstream.go).
//
// The package reads no clock and no environment, and keeps no state between runs. A
// [World] is not safe for concurrent use; several worlds may run in parallel.
package sim
