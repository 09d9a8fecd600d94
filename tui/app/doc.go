// Package app is the shell around the screens. It owns the terminal, the stack of
// screens, the keys, the header and the footer, and the few side effects: the state
// file, exports and the clipboard. Update decides, View draws; neither blocks.
package app
