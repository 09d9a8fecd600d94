// Package keeper keeps the node's addresses: the state machine that owns the address
// book and decides everything that depends on it, and the procedures that carry its
// decisions out.
//
// [Keeper.Handle] takes one thing that happened, [Keeper.Step] draws the consequences:
// who is answered, what is written, what the pool does next. Effects go to the
// [Outside], which never calls back: the daemon carries them out with goroutines, EC2,
// the kernel and a file, testenv/sim with a model of all of them on virtual time. A
// Keeper is not for concurrent use, and reads no clock.
//
// A [Task] is carried out beside the Keeper by procedures (procedure_*.go): straight code over
// [Calls] that attaches an ENI, assigns addresses, releases them, detaches, deletes, observes,
// sweeps. They keep no state between runs.
//
// Invariants: an ADD is answered with an address only after the checkpoint that holds
// it is durable, and so is a DEL; an address that the kernel still routes to a pod is
// neither given to another nor back to EC2; each [Task] is reported by exactly the
// messages that [Carry] sends; whatever a procedure made is either reported or taken back,
// and an answer that was lost is requested again, never guessed.
package keeper
