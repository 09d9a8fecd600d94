package subnets

import (
	"cnictl/tui/keymap"
	"cnictl/tui/pages/parts"
)

// Actions of the screen's own keys.
const (
	actionNext = "next-block"
	actionPrev = "previous-block"
)

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding {
	return []keymap.Binding{
		parts.ZoomKey(),
		keymap.Of(actionPrev, ",", "block before (map)", ","),
		keymap.Of(actionNext, ".", "next block (map)", "."),
	}
}
