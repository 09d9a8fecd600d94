package eni

import "cnictl/tui/keymap"

const actionSubnets = keymap.Subnets

// Keys are the page's own.
func (m *Model) Keys() []keymap.Binding { return keymap.Page("eni") }
