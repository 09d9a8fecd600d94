package node

import (
	"cnictl/tui/keymap"
)

// Actions of the keys of the screen.
const (
	actionSubnets = keymap.Subnets
	actionMaxPods = keymap.MaxPods
	actionTrunks  = keymap.Trunks
)

// Keys returns the bindings of the page.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("node") }
