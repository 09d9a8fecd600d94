package logs

import (
	"cnictl/tui/keymap"
)

// Actions of the screen's keys. Space, w and d differ from those of lists.
const (
	actionHold  = keymap.Hold
	actionWrap  = keymap.Wrap
	actionLevel = keymap.Level
	actionAll   = keymap.AllLines
	actionNode  = keymap.ToNode

	actionAccess = keymap.Access
	actionEach   = keymap.Repeats
)

// Keys returns the bindings of the page.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("logs") }
