// Package keymap is the single table of keys. The screens match keys by it, help and docs
// print it, and tests compare them.
package keymap

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Binding is an action with its keys.
type Binding struct {
	Action string   // a stable word, as in the settings
	Shown  string   // the keys as help shows them
	Help   string   // what they do
	Keys   []string // as their messages print: "ctrl+f", "space", "G"
}

// Of makes a binding.
func Of(action, shown, help string, keys ...string) Binding {
	return Binding{action, shown, help, keys}
}

// rebind replaces the keys of a binding. Help shows them as in the settings, abbreviated.
func (b *Binding) rebind(keys []string) {
	shown := make([]string, len(keys))
	for i, k := range keys {
		shown[i] = written(k)
	}
	b.Keys, b.Shown = keys, strings.Join(shown, " ")
}

// leave removes the keys that another action has taken.
func (b *Binding) leave(taken func(string) bool) {
	if left := slices.DeleteFunc(slices.Clone(b.Keys), taken); len(left) < len(b.Keys) {
		b.rebind(left)
	}
}

// written returns a key as help shows it.
func written(k string) string {
	switch k {
	case "up":
		return "↑"
	case "down":
		return "↓"
	case "left":
		return "←"
	case "right":
		return "→"
	}
	if rest, ok := strings.CutPrefix(k, "ctrl+"); ok {
		return "^" + rest
	}
	if rest, ok := strings.CutPrefix(k, "shift+"); ok {
		return "⇧" + written(rest)
	}
	return k
}

// modifiers come before a key in this order, as terminals send them.
var modifiers = []string{"ctrl", "alt", "shift", "meta", "hyper", "super"}

// named are the keys that are not characters.
var named = []string{
	"up", "down", "left", "right", "enter", "tab", "space", "backspace", "esc", "insert", "delete", "home", "end", "pgup", "pgdown", "begin",
}

// checkKey returns an error if a text is not a key that a terminal can send.
func checkKey(k string) error {
	rest, shift, other := k, false, false
	for _, mod := range modifiers {
		if after, ok := strings.CutPrefix(rest, mod+"+"); ok && after != "" {
			rest, shift, other = after, shift || mod == "shift", other || mod != "shift"
		}
	}
	runes := []rune(rest)
	switch {
	case slices.Contains(named, rest) || functionKey(rest):
		return nil
	case len(runes) == 1 && unicode.IsGraphic(runes[0]) && runes[0] != ' ':
		if upper := strings.ToUpper(rest); shift && !other {
			return fmt.Errorf("no terminal sends %q: write it as %q", k, upper)
		}
		if lower := strings.ToLower(rest); other && lower != rest {
			return fmt.Errorf("no terminal sends %q: write letters after ctrl+ and alt+ in lower case", k)
		}
		return nil
	}
	return fmt.Errorf("%q is not a key; keys are written as \"ctrl+f\", \"space\", \"pgdown\", \"G\", \"f5\"", k)
}

// functionKey reports whether k is one of f1 to f63.
func functionKey(k string) bool {
	var n int
	if _, err := fmt.Sscanf(k, "f%d", &n); err != nil {
		return false
	}
	return n >= 1 && n <= 63 && k == fmt.Sprintf("f%d", n)
}
