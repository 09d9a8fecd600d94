// Package resync compares the outside view (EC2, the checkpoint, the kernel) with the address
// book and returns events for the book.
//
// Everything here is a pure function of views that adapters have read. Missing knowledge never
// frees an address: whatever is momentarily unknown is kept.
package resync
