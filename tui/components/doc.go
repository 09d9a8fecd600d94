// Package components provides the parts of pages that keep a state which keys and the mouse change:
// tables, logs, an input line, and panes with a focus. Drawing them with package draw returns exactly as
// many lines as asked for, none wider.
package components
