package eni

import (
	"cnictl/tui/keymap"
	"cnictl/tui/pages/parts"
)

const actionSubnets = "subnets"

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding {
	return []keymap.Binding{parts.ZoomKey(), keymap.Of(actionSubnets, "S", "its subnet", "S")}
}
