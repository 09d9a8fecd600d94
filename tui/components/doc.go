// Package components provides the parts of pages: tables, panes, charts, maps, logs and
// forms. They are pure: drawing reads the value and the given size, and returns exactly
// that many lines, none wider. Strings from a node are made safe (tui/show)
// before they get here; drawn text is clipped by its width on a terminal.
package components
