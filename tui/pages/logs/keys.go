package logs

import "cnictl/tui/keymap"

// Actions of the screen's own keys. Space, w and d differ from those of lists.
const (
	actionHold  = keymap.Hold
	actionWrap  = keymap.Wrap
	actionLevel = keymap.Level
	actionAll   = keymap.AllLines
	actionNode  = keymap.ToNode

	actionAccess = keymap.Access
)

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("logs") }
