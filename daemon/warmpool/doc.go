// Package warmpool decides what the node's address pool should do next.
//
// [Plan] is a pure function of a [Snapshot], a [Policy] and the time: no clock, no I/O, no
// internal state. The caller executes the actions, marks them as in flight in the next
// snapshot, and plans again whenever something changed. Every action carries a [Reason],
// which logs, metrics and cnictl print.
package warmpool
