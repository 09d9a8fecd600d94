package pod

import (
	"cnictl/tui/keymap"
	"cnictl/tui/pages/parts"
)

// Actions of the screen's own keys.
const (
	actionENI  = "eni"
	actionNode = "node"
)

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding {
	return []keymap.Binding{
		parts.ZoomKey(),
		keymap.Of(actionENI, "e", "its interface", "e"),
		keymap.Of(actionNode, "d", "its node", "d"),
	}
}
