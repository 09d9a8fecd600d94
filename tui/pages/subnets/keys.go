package subnets

import (
	"cnictl/tui/keymap"
)

// Actions of the keys of the screen.
const (
	actionNext = keymap.NextBlock
	actionPrev = keymap.PrevBlock
)

// Keys returns the bindings of the page.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("subnets") }
