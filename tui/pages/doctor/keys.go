package doctor

import (
	"cnictl/tui/keymap"
)

// Actions of the keys of the screen.
const actionAll = keymap.AllNodes

// Keys returns the bindings of the page.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("doctor") }
