// Package journal remembers the newest of a sequence of things, each with its number
// in the sequence, so that a reader who knows the last number it has seen goes on
// without losing or repeating anything, and is told how many it has missed.
//
// It is pure and a leaf: no clock, no lock. Whoever shares a [Ring] guards it.
package journal
