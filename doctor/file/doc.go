// Package file reads and writes evidence files. They describe a situation by its true state, the
// world, and by what was read of it, the sources. Each rejection names the line, the member and
// what would be accepted.
//
// It does no I/O: bytes in, evidence out.
package file
