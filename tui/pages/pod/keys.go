package pod

import "cnictl/tui/keymap"

// Actions of the screen's own keys.
const (
	actionENI  = keymap.ToENI
	actionNode = keymap.ToNode
)

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("pod") }
