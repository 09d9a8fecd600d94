// Package prose is text that a pane holds: it is written top to bottom, wraps at blanks so
// that nothing a node says is lost, and is read through a window. It is pure.
package prose
