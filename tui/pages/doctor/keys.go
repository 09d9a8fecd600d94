package doctor

import (
	"cnictl/tui/keymap"
	"cnictl/tui/pages/parts"
)

// Actions of the screen's own keys.
const actionAll = "all-nodes"

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding {
	return []keymap.Binding{parts.ZoomKey(), keymap.Of(actionAll, "a", "all nodes, or one", "a")}
}
