// Package resync compares what the outside says (EC2, the checkpoint, the
// kernel) with the address book and answers with events for the book.
//
// Everything here is a pure function of views that adapters have read. Its rule is
// that ignorance never frees an address: what is momentarily unknown is kept.
package resync
