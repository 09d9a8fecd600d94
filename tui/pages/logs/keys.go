package logs

import "cnictl/tui/keymap"

// Actions of the screen's own keys.
const (
	actionHold  = "hold"
	actionWrap  = "wrap"
	actionLevel = "level"
	actionAll   = "all-lines"
	actionNode  = "node"
)

// Keys are the page's own. Space, w and d mean other things than on lists.
func (m *Model) Keys() []keymap.Binding {
	return []keymap.Binding{
		keymap.Of(actionHold, "space", "hold still, go on", "space"),
		keymap.Of(actionWrap, "w", "wrap", "w"),
		keymap.Of(actionLevel, "v", "least level", "v"),
		keymap.Of(actionAll, "a", "all lines, not one pod's", "a"),
		keymap.Of(actionNode, "d", "the line's node", "d"),
	}
}
