// Package evidence holds what the doctor knows of a situation: for each node up to two
// readings, and in each reading one value per source. It is the shape in which collectors
// hand over what they read, rules see it, and evidence files store it; the JSON names are
// those of the file format.
//
// A source is read or missing with a reason, never a zero value that means both. Within a
// source, a nil pointer, an empty string and a zero time mean "unknown".
//
// The package is pure: no I/O and no clock.
package evidence
