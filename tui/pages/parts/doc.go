// Package parts is what the pages of one node, address, subnet or cause have in common:
// documents that are read again while they are looked at, sheets of text that wrap and
// scroll, and the words for states and for what could not be read.
package parts
