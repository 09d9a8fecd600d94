// Package file reads and writes evidence files. A file describes a situation: the state of the
// world, and what was read of it. Every refusal names line, member and what would be accepted.
//
// It does no I/O: bytes in, evidence out.
package file
