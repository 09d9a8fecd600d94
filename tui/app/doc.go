// Package app is the shell around the screens: it owns the terminal, the stack of
// screens, the keys, the header and the footer, and the few effects there are - a
// state file, exports, the clipboard. Update decides, View draws; neither waits.
package app
