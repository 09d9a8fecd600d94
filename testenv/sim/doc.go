// Package sim runs nodes against a model of everything outside the daemon: EC2, the
// metadata service, the kernel, the checkpoint file, kubelet and the plugin, on virtual
// time and from a seed.
//
// The code under test is the real one: each node has a real [keeper.Keeper] with the real
// planner, address book and reconcile, and its tasks are the real procedures. The model
// replaces vpcapi, imds, hostnet, the file and the shell's goroutines. A
// procedure is sequential code, so each task is a coroutine that is resumed when the
// model answers its call; exactly one piece of code runs at any time, and the same seed
// gives the same run on any machine.
//
// [Run] plays one seed: pods come and go while calls fail, answers are lost, processes
// die, metadata lags and other people change things ([Scenario]); then the faults end and
// the nodes must settle. The invariants are checked after every event (invariants.go), the
// final state at the end (rest.go).
//
// Assumptions of the model, which the daemon may rely on: EC2 has carried out or dropped
// a call when its client gives up waiting for the answer; EC2's lists show a change at
// once or, in worlds where they lag, within seconds and before a daemon that died has been
// restarted; a host route goes with its link.
//
// A [Fleet] is another use of the same world: many nodes that scale up together, with no
// faults but EC2's request limits, running our daemon or a model of upstream's loop
// (upstream.go).
//
// The package reads no clock and no environment, and keeps nothing between two runs. A
// [World] is not for concurrent use; several worlds may run in parallel.
package sim
