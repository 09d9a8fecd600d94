// Package rtnl speaks rtnetlink in batches: many changes in one send, one answer in
// the normal case. It is the bottom adapter under daemon/internal/hostnet and
// plugin/podnet/apply.
//
// A [Batch] is built by methods named after what they change, each appending one
// message. [Conn.Do] sends the batch and returns the first failure, by name and
// errno. The kernel works through all messages of a send even when one of them
// fails, so a caller that sees an error must expect later messages to have taken
// effect. Only the last message asks for an acknowledgement; the kernel reports
// failures of the others unasked.
//
// A Conn belongs to the network namespace in which its socket was opened, whatever
// its thread does later, and to one goroutine at a time. Dumps that the kernel marks
// as interrupted are repeated, never an error at once.
//
// The plugin starts once per pod: this package may not grow start-up cost (no
// package state to build, nothing but golang.org/x/sys/unix beneath it, no fmt or os).
package rtnl
