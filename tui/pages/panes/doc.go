// Package panes lays a page out in panes: which has the focus, how much room each gets,
// and which one a key or the pointer means.
package panes
