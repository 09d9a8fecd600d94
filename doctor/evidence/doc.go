// Package evidence holds what the doctor knows about a situation: up to two readings of each
// node, each with one value per source. Collectors produce it, rules examine it, and evidence
// files store it under the same JSON names.
//
// A source was read, or is missing with a reason; its zero value never means "missing". Within a
// source, a nil pointer, an empty string and a zero time mean "unknown".
//
// The package is pure: no I/O and no clock.
package evidence
