package doctor

import "cnictl/tui/keymap"

// Actions of the screen's own keys.
const actionAll = keymap.AllNodes

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("doctor") }
