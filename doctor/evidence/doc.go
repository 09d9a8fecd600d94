// Package evidence holds what the doctor knows about a situation: up to two readings per node,
// with one value per source in each. Collectors return this form, rules check it, and evidence
// files store it; the JSON names are those of the file format.
//
// A source was either read or is missing with a reason; no zero value can mean both. Within a
// source, a nil pointer, an empty string and a zero time mean "unknown".
//
// The package is pure: no I/O and no clock.
package evidence
