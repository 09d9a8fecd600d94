// Package panes lays out a page in panes: which one is focused, how large each is, and which
// one a key or the mouse addresses.
package panes
