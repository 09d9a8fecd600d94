// Package procedure holds the order of calls by which the daemon changes what EC2 and
// the kernel hold: attach an ENI, assign addresses, release them, detach, delete,
// adopt, look, sweep.
//
// A procedure is straight code over [Calls] and returns what became of it; it keeps
// no state between runs, reads no clock and logs nothing. The daemon gives it EC2 and
// the kernel, daemon/sim a model of both on virtual time: what is simulated is what
// runs.
//
// Invariants: whatever was made is either reported or taken back; an answer that was
// lost is requested again, never guessed; nothing that the kernel still routes to a
// pod is given back.
package procedure
