// Package panes lays a page out in panes: which has the focus, how large each is, and
// which one a key or the mouse addresses.
package panes
