package trunks

import (
	"cnictl/tui/keymap"
)

// Keys returns the bindings of the page.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("trunks") }
