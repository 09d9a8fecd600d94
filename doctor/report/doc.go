// Package report turns a diagnosis into output for people and programs: the exit status, the
// findings without those that are suppressed, commands with the names filled in, what could
// not be read in words, and the forms that build systems read.
//
// The package is pure.
package report
