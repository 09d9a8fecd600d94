// Package file reads and writes evidence files: what was read of each node, source by source, and
// nothing else. encoding/json converts values; what it would skip or mistake is refused before,
// with the line and the member.
//
// It does no I/O: bytes in, evidence out.
package file
