// Package causes decides which causes of the catalogue the evidence shows. Each rule states a few
// facts, in the file of its group. The engine alone turns facts into confidence and findings into
// a report: it suppresses consequences, ranks, and lists what could not be checked.
//
// The package is pure: no I/O and no clock. "Now" is the time of a reading.
package causes
