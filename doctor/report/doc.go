// Package report turns a diagnosis into output for people and programs: the exit status, the
// findings that are not suppressed, commands with names filled in, unread sources in words, and
// the formats that build systems read.
//
// The package is pure.
package report
