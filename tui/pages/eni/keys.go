package eni

import (
	"cnictl/tui/keymap"
)

const actionSubnets = keymap.Subnets

// Keys returns the bindings of the page.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("eni") }
