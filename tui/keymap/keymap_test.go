package keymap

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryKeyHasOneAction(t *testing.T) {
	t.Parallel()
	m, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	actions := map[string]bool{}
	for _, s := range Table() {
		if s.Title == "" || len(s.Bindings) == 0 {
			t.Errorf("section %q", s.Title)
		}
		for _, b := range s.Bindings {
			if actions[b.Action] {
				t.Errorf("%s is there twice", b.Action)
			}
			actions[b.Action] = true
			if b.Shown == "" || b.Help == "" || len(b.Keys) == 0 {
				t.Errorf("%s has no help or no key", b.Action)
			}
			for _, k := range b.Keys {
				if got := m.Action(k, nil); got != b.Action {
					t.Errorf("%q is %s, not %s", k, got, b.Action)
				}
			}
		}
	}
	for _, a := range appRow {
		if !actions[a] {
			t.Errorf("no key for %s", a)
		}
	}
}

// TestKeysAreTheOnesPeopleKnow checks the keys that people know from k9s, less and vim.
func TestKeysAreTheOnesPeopleKnow(t *testing.T) {
	t.Parallel()
	m, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for keys, want := range map[string]string{
		"up k": Up, "down j": Down, "pgup ctrl+b": PageUp, "pgdown ctrl+f": PageDown, "ctrl+u": HalfUp, "ctrl+d": HalfDown, "home g": First, "end G": Last,
		"enter l right d": In, "esc h left backspace": Out, "[": Older, "]": Newer, "-": LastPage, "1 9": Screen1, "tab": NextPane, "shift+tab": PrevPane, ": ctrl+a": Palette,
		"/": Filter, "n": NextMatch, "N": PrevMatch, "ctrl+l": Clear, "s": Sort, "shift+left": SortLeft, "shift+right": SortRight, "o": Reverse,
		"space": Mark, "ctrl+space": Range, "f": Faults, "w ctrl+w": Wide, "p": Pause, "r ctrl+r": Refresh, "+": Slower, "_": Faster,
		"D": Doctor, "L": Logs, "W": WhatIf, "y": Object, "i c": Copy, "x ctrl+s": Export, "t": Theme, "m": Mouse, "?": Help, "q": Back, "ctrl+c": Quit, "ctrl+z": Suspend, "ctrl+g": Diagnose,
		"{": MinuteBack, "}": MinuteAhead, "(": TenBack, ")": TenAhead, "<": PlaySlower, ">": PlayFaster,
	} {
		for k := range strings.FieldsSeq(keys) {
			if got := m.Action(k, nil); got != want {
				t.Errorf("%q is %q, want %s", k, got, want)
			}
		}
	}
}

func TestOwnKeys(t *testing.T) {
	t.Parallel()
	m, err := New(map[string][]string{Down: {"down", "e"}, Reverse: {"O"}})
	if err != nil {
		t.Fatal(err)
	}
	if m.Action("e", nil) != Down || m.Action("j", nil) != "" || m.Action("O", nil) != Reverse {
		t.Error("own keys are not taken")
	}
	if got := m.Shown(Down); got != "↓ e" {
		t.Errorf("help shows %q", got)
	}
}

// TestOwnKeysAreTaken: a user-defined key is taken only from the action that has it by default.
func TestOwnKeysAreTaken(t *testing.T) {
	t.Parallel()
	m, err := New(map[string][]string{
		Quit: {"q", "ctrl+q"}, Down: {"k"}, Filter: {"z"}, Screen1: {"f1", "f2"},
		"node.subnets": {"X"}, "logs.level": {"w"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ page, key, want string }{
		{"", "q", Quit}, {"", "ctrl+q", Quit}, {"", "ctrl+c", ""}, {"", "esc", Out},
		{"", "k", Down}, {"", "up", Up}, {"", "down", ""},
		{"", "f2", Screen1}, {"", "1", ""},
		{"node", "X", Subnets}, {"node", "S", ""}, {"eni", "S", Subnets},
		{"node", "z", Filter}, {"pod", "z", Filter},
		{"logs", "w", Level}, {"logs", "v", ""}, {"object", "w", Wrap}, {"", "w", Wide},
	} {
		if got := m.Action(tt.key, m.Page(tt.page)); got != tt.want {
			t.Errorf("%q on %q is %q, want %q", tt.key, tt.page, got, tt.want)
		}
	}
	if got := m.Shown(Quit) + "|" + m.Shown(Back) + "|" + m.Shown(Up) + "|" + m.First(Screen1); got != "q ^q||↑|f1" {
		t.Errorf("help shows %q", got)
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		own  map[string][]string
		says string
	}{
		"two of the user's":         {map[string][]string{Down: {"e"}, Up: {"e"}}, `"e" is bound to both up and down`},
		"two on a page":             {map[string][]string{"logs.wrap": {"e"}, "logs.level": {"e"}}, `"e" is bound to both logs.wrap and logs.level`},
		"a page and the app's row":  {map[string][]string{"node.subnets": {"t"}}, `"t" of node.subnets is theme on every screen`},
		"no action":                 {map[string][]string{"fly": {"F"}}, `no action named "fly"`},
		"no action of the page":     {map[string][]string{"node.wrap": {"F"}}, `no action named "node.wrap"`},
		"a page's without the page": {map[string][]string{Wrap: {"F"}}, `no action named "wrap"`},
		"no key":                    {map[string][]string{Down: {""}}, `"" is not a key`},
		"two words":                 {map[string][]string{Down: {"ctrl f"}}, `"ctrl f" is not a key`},
		"misspelt":                  {map[string][]string{Down: {"ctlr+f"}}, `"ctlr+f" is not a key`},
		"the wrong order":           {map[string][]string{Down: {"shift+ctrl+f"}}, `"shift+ctrl+f" is not a key`},
		"shift and a letter":        {map[string][]string{Down: {"shift+g"}}, `write it as "G"`},
		"ctrl and a capital":        {map[string][]string{Down: {"ctrl+F"}}, "lower case"},
		"no such function key":      {map[string][]string{Down: {"f64"}}, `"f64" is not a key`},
		"never quit":                {map[string][]string{Quit: nil}, "quit needs a key"},
		"quit taken":                {map[string][]string{Down: {"ctrl+c"}}, "quit needs a key"},
	} {
		err := Check(tt.own)
		if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "keys: ") {
			t.Errorf("%s: %v, want %s", name, err, tt.says)
		}
	}
	for _, k := range []string{"ctrl+alt+f", "alt+enter", "shift+up", "ctrl+shift+up", "f12", "é", "+", "ctrl++", "pgdown", "ctrl+@"} {
		if err := Check(map[string][]string{Mark: {k}}); err != nil {
			t.Errorf("%q: %v", k, err)
		}
	}
	if err := Check(nil); err != nil {
		t.Error(err)
	}
}

// TestTablesAreGood: Check accepts the keys of the tables, and no page's keys conflict with each
// other or with the app's.
func TestTablesAreGood(t *testing.T) {
	t.Parallel()
	m, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Clone(m.Sections)
	for _, p := range m.Pages {
		for _, conflict := range m.Conflicts(p.Bindings) {
			t.Errorf("%s: %s", p.Page, conflict)
		}
		all = append(all, Section{p.Page, p.Bindings})
	}
	for _, s := range all {
		for _, b := range s.Bindings {
			for _, k := range b.Keys {
				if err := checkKey(k); err != nil {
					t.Errorf("%s %s: %v", s.Title, b.Action, err)
				}
			}
			if b.Shown == "" || b.Help == "" || len(b.Help) > 26 {
				t.Errorf("%s %s: help is %q %q", s.Title, b.Action, b.Shown, b.Help)
			}
		}
	}
}

func TestPagesKeysComeFirstButForTheAppsRow(t *testing.T) {
	t.Parallel()
	m, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	page := []Binding{Of("wrap", "w", "wrap", "w"), Of("tea", "t", "tea", "t")}
	if m.Action("w", page) != "wrap" {
		t.Error("w is not the page's")
	}
	if m.Action("t", page) != Theme {
		t.Error("t is not the app's")
	}
	if got := m.Conflicts(page); len(got) != 1 {
		t.Errorf("conflicts %v", got)
	}
	if got := m.Conflicts(append(page[:1:1], Of("warm", "w", "warm", "w"))); len(got) != 1 {
		t.Errorf("conflicts %v", got)
	}
}
