package keymap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Section is a group of keys with a heading.
type Section struct {
	Title    string
	Bindings []Binding
}

// Recording is the section of keys that only a recording has.
const Recording = "Recording"

// Table is every key of the app, by what it is for: help, docs and the matching are made
// of it.
func Table() []Section {
	return []Section{
		{"Move", []Binding{
			Of(Up, "↑ k", "up", "up", "k"),
			Of(Down, "↓ j", "down", "down", "j"),
			Of(PageUp, "pgup ^b", "page up", "pgup", "ctrl+b"),
			Of(PageDown, "pgdn ^f", "page down", "pgdown", "ctrl+f"),
			Of(HalfUp, "^u", "half page up", "ctrl+u"),
			Of(HalfDown, "^d", "half page down", "ctrl+d"),
			Of(First, "home g", "first", "home", "g"),
			Of(Last, "end G", "last", "end", "G"),
		}},
		{"Go", []Binding{
			Of(In, "enter l →", "open", "enter", "l", "right"),
			Of(Out, "esc h ←", "back", "esc", "h", "left", "backspace"),
			Of(Older, "[", "older screen", "["),
			Of(Newer, "]", "newer screen", "]"),
			Of(LastPage, "-", "last screen", "-"),
			Of(Screen1, "1…9", "screens", "1", "2", "3", "4", "5", "6", "7", "8", "9"),
			Of(NextPane, "tab", "next pane", "tab"),
			Of(PrevPane, "⇧tab", "pane before", "shift+tab"),
			Of(Palette, ":", "go to, commands", ":"),
		}},
		{"Find and sort", []Binding{
			Of(Filter, "/", "filter", "/"),
			Of(NextMatch, "n", "next match", "n"),
			Of(PrevMatch, "N", "match before", "N"),
			Of(Clear, "^l", "clear filter", "ctrl+l"),
			Of(Sort, "s", "sort menu", "s"),
			Of(SortLeft, "⇧←", "sort by left", "shift+left"),
			Of(SortRight, "⇧→", "sort by right", "shift+right"),
			Of(Reverse, "o", "reverse", "o"),
		}},
		{"View", []Binding{
			Of(Mark, "space", "mark", "space"),
			Of(Range, "^space", "mark up to here", "ctrl+space", "ctrl+@"),
			Of(Faults, "f", "faults only", "f"),
			Of(Wide, "w", "wide", "w"),
			Of(Pause, "p", "pause", "p"),
			Of(Refresh, "r", "read now", "r"),
			Of(Slower, "+", "longer pace", "+"),
			Of(Faster, "_", "shorter pace", "_"),
		}},
		{"Act", []Binding{
			Of(Doctor, "D", "doctor", "D"),
			Of(Logs, "L", "logs", "L"),
			Of(Object, "y", "YAML, JSON", "y"),
			Of(Copy, "i", "copy the name", "i"),
			Of(Export, "x", "export", "x"),
		}},
		{"App", []Binding{
			Of(Theme, "t", "theme", "t"),
			Of(Mouse, "m", "mouse", "m"),
			Of(Help, "?", "help", "?"),
			Of(Diagnose, "^g", "diagnostics", "ctrl+g"),
			Of(Back, "q", "back, quit", "q"),
			Of(Suspend, "^z", "suspend", "ctrl+z"),
			Of(Quit, "^c", "quit", "ctrl+c"),
		}},
		{Recording, []Binding{
			Of(MinuteBack, "{", "1 minute back", "{"),
			Of(MinuteAhead, "}", "1 minute on", "}"),
			Of(TenBack, "(", "10 minutes back", "("),
			Of(TenAhead, ")", "10 minutes on", ")"),
			Of(PlaySlower, "<", "play slower", "<"),
			Of(PlayFaster, ">", "play faster", ">"),
		}},
	}
}

// appRow are the actions that no page may take for itself.
var appRow = []string{Theme, Mouse, Help, Diagnose, Back, Quit, Suspend, Palette}

// Map finds the action of a key. The zero Map knows none.
type Map struct {
	Sections []Section
	actions  map[string]string // key → action
}

// New makes the map of the table with keys of the user's own: action → keys. An unknown
// action, or a key that two actions would have, is refused.
func New(own map[string][]string) (Map, error) {
	m := Map{Sections: Table(), actions: map[string]string{}}
	left := maps.Clone(own)
	for i := range m.Sections {
		for j := range m.Sections[i].Bindings {
			b := &m.Sections[i].Bindings[j]
			keys, ok := left[b.Action]
			delete(left, b.Action)
			if !ok {
				continue
			}
			if len(keys) == 0 && b.Action == Quit {
				return Map{}, fmt.Errorf("keys: %s needs a key", b.Action)
			}
			for _, k := range keys {
				if k == "" || strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' }) {
					return Map{}, fmt.Errorf("keys: %s: %q is no key; write keys as \"ctrl+f\", \"space\", \"G\"", b.Action, k)
				}
			}
			b.SetKeys(keys...)
			b.SetHelp(strings.Join(keys, " "), b.Help().Desc)
		}
	}
	if len(left) > 0 {
		return Map{}, fmt.Errorf("keys: no action is called %q", slices.Sorted(maps.Keys(left))[0])
	}
	for _, s := range m.Sections {
		for _, b := range s.Bindings {
			for _, k := range b.Keys() {
				if other, ok := m.actions[k]; ok {
					return Map{}, fmt.Errorf("keys: %q is bound to both %s and %s", k, other, b.Action)
				}
				m.actions[k] = b.Action
			}
		}
	}
	return m, nil
}

// Action is what a key does on a page with keys of its own; "" = nothing. The page's own
// come first, but the app's row is never hidden by them.
func (m Map) Action(key string, page []Binding) string {
	action := m.actions[key]
	if slices.Contains(appRow, action) {
		return action
	}
	for _, b := range page {
		if slices.Contains(b.Keys(), key) {
			return b.Action
		}
	}
	return action
}

// Live is the map without the keys of recordings in what help shows.
func (m Map) Live() Map {
	m.Sections = slices.DeleteFunc(slices.Clone(m.Sections), func(s Section) bool { return s.Title == Recording })
	return m
}

// Binding is that of an action.
func (m Map) Binding(action string) (Binding, bool) {
	for _, s := range m.Sections {
		for _, b := range s.Bindings {
			if b.Action == action {
				return b, true
			}
		}
	}
	return Binding{}, false
}

// Shown is how help writes an action's keys.
func (m Map) Shown(action string) string {
	b, _ := m.Binding(action)
	return b.Help().Key
}

// Conflicts are the keys of a page that cannot be: twice on the page, or taken from the
// app's row.
func (m Map) Conflicts(page []Binding) []string {
	var out []string
	seen := map[string]string{}
	for _, b := range page {
		for _, k := range b.Keys() {
			if other, ok := seen[k]; ok {
				out = append(out, fmt.Sprintf("%q is both %s and %s", k, other, b.Action))
			}
			seen[k] = b.Action
			if slices.Contains(appRow, m.actions[k]) {
				out = append(out, fmt.Sprintf("%q of %s is the app's %s", k, b.Action, m.actions[k]))
			}
		}
	}
	return out
}
