// Package report makes of a diagnosis what people and programs want: the exit status, the
// findings without those that somebody accepted, commands with the names filled in, and the
// forms that build systems read.
//
// The package is pure.
package report
