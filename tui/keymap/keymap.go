// Package keymap is the one table of keys: what the screens match, what help and docs
// print and what tests hold against each other.
package keymap

import "charm.land/bubbles/v2/key"

// Binding is a key with what it does. Action is a stable word that settings rebind by.
type Binding struct {
	Action string
	key.Binding
}

// Of makes a binding: keys as their messages print ("ctrl+f", "space", "G").
func Of(action, shown, help string, keys ...string) Binding {
	return Binding{action, key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, help))}
}
