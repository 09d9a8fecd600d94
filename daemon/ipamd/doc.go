// Package ipamd is the per-node daemon: it connects the adapters to one goroutine, the
// owner, which holds the address book.
//
// The owner takes messages (ADD, DEL, finished EC2 calls, metadata, ticks), applies
// them to the book, hands the changed allocations to the checkpoint writer and plans
// what the pool should do next. It never waits for EC2, the kernel, the disk or the API
// server: those run concurrently and report back with a message. A request is answered
// only after the checkpoint that contains its effect is durable.
//
// Every goroutine started here belongs to the group in [Run] and ends with it.
package ipamd
