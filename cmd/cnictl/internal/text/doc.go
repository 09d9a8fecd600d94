// Package text makes strings of nodes safe and short to print: escapes, ages,
// counts. It is pure.
package text
