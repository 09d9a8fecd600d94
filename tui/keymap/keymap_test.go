package keymap

import (
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
			if b.Help().Key == "" || b.Help().Desc == "" || len(b.Keys()) == 0 {
				t.Errorf("%s has no help or no key", b.Action)
			}
			for _, k := range b.Keys() {
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

// The keys of the specification, as people know them.
func TestKeysAreTheOnesPeopleKnow(t *testing.T) {
	t.Parallel()
	m, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for keys, want := range map[string]string{
		"up k": Up, "down j": Down, "pgup ctrl+b": PageUp, "pgdown ctrl+f": PageDown, "ctrl+u": HalfUp, "ctrl+d": HalfDown, "home g": First, "end G": Last,
		"enter l right": In, "esc h left backspace": Out, "[": Older, "]": Newer, "-": LastPage, "1 9": Screen1, "tab": NextPane, "shift+tab": PrevPane, ":": Palette,
		"/": Filter, "n": NextMatch, "N": PrevMatch, "ctrl+l": Clear, "s": Sort, "shift+left": SortLeft, "shift+right": SortRight, "o": Reverse,
		"space": Mark, "ctrl+space": Range, "f": Faults, "w": Wide, "p": Pause, "r": Refresh, "+": Slower, "_": Faster,
		"D": Doctor, "L": Logs, "y": Object, "i": Copy, "x": Export, "t": Theme, "m": Mouse, "?": Help, "q": Back, "ctrl+c": Quit, "ctrl+z": Suspend, "ctrl+g": Diagnose,
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
	if got := m.Shown(Down); got != "down e" {
		t.Errorf("help shows %q", got)
	}
	for name, own := range map[string]map[string][]string{
		"taken":      {Down: {"k"}},
		"no action":  {"fly": {"F"}},
		"no key":     {Down: {""}},
		"not a key":  {Down: {"ctrl f"}},
		"never quit": {Quit: nil},
	} {
		if _, err := New(own); err == nil {
			t.Errorf("%s: accepted", name)
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
