// Package prose lays out text in a pane. The text is written top to bottom, wraps at blanks
// so that nothing a node reports is lost, and is read through a window. The package is pure.
package prose
