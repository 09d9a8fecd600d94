package app

import (
	"strings"
	"testing"

	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// TestKeysOfEveryScreen: each screen's help lists its keys, and none hides another or the app's.
func TestKeysOfEveryScreen(t *testing.T) {
	t.Parallel()
	keys, err := keymap.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	fleet := pagetest.NewSource(5, 1)
	c := pages.Context{Width: 80, View: fleet.View(), Source: fleet, Theme: draw.PlainTheme(), Now: fleet.Now(), Clock: fleet.Now()}
	for _, s := range screens() {
		p := s.new(pages.Open{Screen: s.name, Node: pagetest.NodeName(0)})
		if p.Name() != s.name {
			t.Errorf("the screen %s calls itself %s", s.name, p.Name())
		}
		for _, conflict := range keys.Conflicts(keymap.Page(s.name)) {
			t.Errorf("%s: %s", s.name, conflict)
		}
		c.Height = 200
		text := strings.Join(newHelp(keys, p, digitTitles()).Lines(c), "\n")
		for _, section := range keys.Sections {
			for _, b := range section.Bindings {
				if b.Action != keymap.Screen1 && !strings.Contains(text, b.Help) {
					t.Errorf("%s: the help at 80 columns lacks %q", s.name, b.Help)
				}
			}
		}
		for _, b := range keymap.Page(s.name) {
			if !strings.Contains(text, b.Shown+" ") {
				t.Errorf("%s: the help lacks the key %s", s.name, b.Shown)
			}
		}
	}
}

// TestHelpFits: the keys fit 80x24 without scrolling, those of the screen first, each group whole.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	b := newBench(t, pagetest.NewSource(3, 1), nil)
	b.resize(80, 24)
	b.change()
	b.press("?")
	b.sees(t, "suspend", "page up", "sort right", "export", "^c", "Keys of Nodes", "group by")
	b.press("end")
	b.sees(t, "label:team=x", "8 what-if")
}

// TestOwnKeysOnScreens: user-defined keys do what the table says, appear in the hints, and
// type letters in text fields.
func TestOwnKeysOnScreens(t *testing.T) {
	t.Parallel()
	b := newBench(t, pagetest.NewSource(5, 1), func(o *Options) {
		o.Keys = map[string][]string{"quit": {"q", "ctrl+q"}, "object.wrap": {"W"}, "out": {"b"}, "screen-1": {"Q", "A"}}
	})
	b.resize(120, 40)
	b.change()
	b.press("y")
	b.sees(t, "<W> wrap", "<b> back")
	b.press("b", "A")
	if got := b.stackNames(); got != "overview>subnets" {
		t.Errorf("A leads to %s", got)
	}
	b.press("Q", "/")
	b.typed("q")
	b.sees(t, " /q")
	if b.quits != 0 {
		t.Error("a letter of a filter ends the program")
	}
	b.press("enter", "q")
	if b.quits != 1 {
		t.Error("q does not end the program")
	}
}

// TestEveryScreenCanBeReached: digits and the palette lead to every standalone screen.
func TestEveryScreenCanBeReached(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 5)
	for i, s := range digits() {
		b.press(string(rune('1' + i)))
		if got := b.page().Name(); got != s.name {
			t.Errorf("%d goes to %s, want %s", i+1, got, s.name)
		}
	}
	if len(digits()) > 9 {
		t.Error("there are more screens than digits")
	}
}
