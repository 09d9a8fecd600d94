// Package rtnl speaks rtnetlink in batches: many changes in one send, and normally one
// answer. It is the bottom adapter under daemon/internal/hostnet and plugin/podnet/apply.
//
// A [Batch] is built by methods named after what they change, each appending one message.
// [Conn.Do] sends the batch and returns the first failure, by name and errno. The kernel
// processes all messages of a send even if one of them fails, so after an error a caller
// must expect later messages to have taken effect. Only the last message requests an
// acknowledgement; the kernel reports failures of the others anyway.
//
// A Conn belongs to the network namespace in which its socket was opened, whatever its
// thread does later, and to one goroutine at a time. Dumps that the kernel marks as
// interrupted are repeated before they become an error.
//
// The plugin starts once per pod: this package must not increase start-up cost (no package
// state to build, only golang.org/x/sys/unix beneath it, no fmt or os).
package rtnl
