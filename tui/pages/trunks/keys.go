package trunks

import (
	"cnictl/tui/keymap"
	"cnictl/tui/pages/parts"
)

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding { return []keymap.Binding{parts.ZoomKey()} }
