package subnets

import "cnictl/tui/keymap"

// Actions of the screen's own keys.
const (
	actionNext = keymap.NextBlock
	actionPrev = keymap.PrevBlock
)

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("subnets") }
