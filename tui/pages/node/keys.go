package node

import "cnictl/tui/keymap"

// Actions of the screen's own keys.
const (
	actionSubnets = keymap.Subnets
	actionTrunks  = keymap.Trunks
)

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("node") }
