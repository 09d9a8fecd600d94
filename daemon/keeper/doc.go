// Package keeper keeps the node's addresses: a state machine that owns the address book and
// makes every decision that depends on it, and the procedures that carry those decisions out.
//
// [Keeper.Handle] takes one message about something that happened; [Keeper.Step] acts on it:
// which requests to answer, what to write, what the pool does next. Effects go to the
// [Outside], which never calls back: the daemon implements it with goroutines, EC2, the
// kernel and a file, testenv/sim with a model of all of them on virtual time. A Keeper is
// not safe for concurrent use, and never reads a clock.
//
// Procedures (procedure_*.go) carry out a [Task] concurrently with the Keeper: straight-line
// code over [Calls] that attaches an ENI, assigns addresses, releases them, detaches, deletes,
// observes, sweeps. They keep no state between runs.
//
// Invariants: an ADD is answered with an address only after the checkpoint that contains it
// is durable, and likewise a DEL; an address that the kernel still routes to a pod is neither
// given to another pod nor returned to EC2; with a cooldown, an address is given to another
// pod only after two passes over connection tracking since its last pod ended, unless they
// fail (after a restart, which forgets cooldowns, one bounded pass before serving stands in for
// both); each [Task] is reported by exactly the messages that [Run] sends; whatever a procedure
// created is either reported or undone, and if an answer was lost, EC2 is asked again, never
// guessed at.
package keeper
