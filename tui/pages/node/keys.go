package node

import (
	"cnictl/tui/keymap"
	"cnictl/tui/pages/parts"
)

// Actions of the screen's own keys.
const (
	actionSubnets = "subnets"
	actionTrunks  = "trunks"
)

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding {
	return []keymap.Binding{
		parts.ZoomKey(),
		keymap.Of(actionSubnets, "S", "subnets", "S"),
		keymap.Of(actionTrunks, "T", "trunks", "T"),
	}
}
