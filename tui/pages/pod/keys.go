package pod

import (
	"cnictl/tui/keymap"
)

// Actions of the keys of the screen.
const (
	actionENI  = keymap.ToENI
	actionNode = keymap.ToNode
)

// Keys returns the bindings of the page.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("pod") }
