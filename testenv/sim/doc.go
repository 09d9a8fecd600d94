// Package sim runs nodes against a model of everything outside of the daemon: EC2, the
// metadata service, the kernel, the checkpoint file, kubelet and the plugin, on virtual
// time and from a seed.
//
// What is simulated is what runs: each node has the real [keeper.Keeper] with the real
// planner, address book and reconcile, and its tasks are the real procedures. The model
// takes the place of vpcapi, imds, hostnet, the file and the shell's goroutines. A
// procedure is sequential code, so each task is a coroutine that is resumed when the
// model answers its call; exactly one piece of code runs at any time, and the same seed
// gives the same run on any machine.
//
// [Run] plays one seed: pods come and go while calls fail, answers are lost, processes
// die, metadata lags and other people change things ([Scenario]); then the trouble ends
// and the node must come to rest. After every event the invariants are checked
// (invariants.go), at the end that everything is in its place (rest.go).
//
// Assumptions of the model, which the daemon may rely on: EC2 has carried out or dropped
// a call when its client gives up waiting for the answer; EC2's lists show a change at
// once, or in worlds where they lag, within seconds and before a daemon that died has
// been started again; a host route goes with its link.
//
// A [Fleet] is another use of the same world: many nodes that scale up together while
// nothing goes wrong but EC2's request limits, with our daemons or with a model of the
// upstream's loop (original.go) on them.
//
// The package reads no clock and no environment, and keeps nothing between two runs. A
// [World] is not for concurrent use; several worlds may run side by side.
package sim
