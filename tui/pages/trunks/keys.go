package trunks

import "cnictl/tui/keymap"

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("trunks") }
