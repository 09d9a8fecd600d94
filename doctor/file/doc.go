// Package file reads and writes evidence files: a situation written down, as what is so and
// what was read of it. Every refusal names line, member and what would be accepted.
//
// It does no I/O: bytes in, evidence out.
package file
