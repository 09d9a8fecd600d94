package app

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"cnictl/daemon/fleet/watch"
	"cnictl/testenv/text/golden"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

var utf8Locale = environ{"TERM=xterm-256color", "LC_ALL=C.UTF-8"}

// bench is a model that records everything it does.
type bench struct {
	*Model
	fleet  *pagetest.Source
	clock  time.Time
	saves  []saved
	files  map[string][]byte
	reads  []pages.Read
	copied []string
	quits  int
}

func newBench(t testing.TB, fleet *pagetest.Source, change func(*Options)) *bench {
	t.Helper()
	b := &bench{fleet: fleet, clock: pagetest.Start(), files: map[string][]byte{}}
	o := Options{Source: fleet, Now: func() time.Time { return b.clock }, Theme: draw.Dark, Environ: utf8Locale}
	if change != nil {
		change(&o)
	}
	keys, err := keymap.New(o.Keys)
	if err != nil {
		t.Fatal(err)
	}
	b.Model = newModel(o, o.Environ, keys, parseState(nil), effects{
		read:    func(r pages.Read) tea.Cmd { b.reads = append(b.reads, r); return nil },
		save:    func(s saved) tea.Cmd { b.saves = append(b.saves, s); return nil },
		export:  func(name string, data []byte) tea.Cmd { b.files[name] = data; return nil },
		memory:  func() tea.Cmd { return nil },
		examine: examiner(t.Context(), o.Examine),
		connect: func(name string) tea.Cmd {
			return func() tea.Msg { return connected{name, o.Connect(t.Context(), name)} }
		},
		call:  func(what func(watch.Source)) { what(o.Source) },
		after: func(time.Duration, tea.Msg) tea.Cmd { return nil },
	})
	b.send(tea.ColorProfileMsg{Profile: colorprofile.ANSI})
	return b
}

// send sends a message and all messages that result from it.
func (b *bench) send(msg tea.Msg) {
	_, cmd := b.Update(msg)
	b.run(cmd)
}

func (b *bench) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			b.run(c)
		}
	default:
		switch fmt.Sprintf("%T", msg) { // unexported types of the library
		case "tea.setClipboardMsg":
			b.copied = append(b.copied, fmt.Sprint(msg))
		case "tea.QuitMsg", "tea.sequenceMsg": // writes the state file, then quits
			b.quits++
		default:
			b.send(msg)
		}
	}
}

func (b *bench) resize(w, h int) { b.send(tea.WindowSizeMsg{Width: w, Height: h}) }

// change sends the newest view, as the feed does.
func (b *bench) change() { b.send(changed{b.fleet.View(), b.fleet.Stats()}) }

// press presses keys, named as their messages print them.
func (b *bench) press(keys ...string) {
	for _, k := range keys {
		b.send(press(k))
	}
}

func press(k string) tea.KeyPressMsg {
	named := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab},
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
		"home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
		"backspace": {Code: tea.KeyBackspace}, "space": {Code: tea.KeySpace, Text: " "},
	}
	if m, ok := named[k]; ok {
		return m
	}
	if rest, ok := strings.CutPrefix(k, "ctrl+"); ok {
		if rest == "space" {
			return tea.KeyPressMsg{Code: tea.KeySpace, Mod: tea.ModCtrl}
		}
		return tea.KeyPressMsg{Code: []rune(rest)[0], Mod: tea.ModCtrl}
	}
	if rest, ok := strings.CutPrefix(k, "shift+"); ok {
		m := named[rest]
		m.Mod = tea.ModShift
		return m
	}
	r := []rune(k)[0]
	return tea.KeyPressMsg{Code: r, Text: string(r)}
}

func (b *bench) typed(text string) {
	for _, r := range text {
		b.send(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

// frame is the picture as rendered for a terminal with a colour profile.
func (b *bench) frame(t testing.TB, p colorprofile.Profile) string {
	t.Helper()
	var out bytes.Buffer
	w := &colorprofile.Writer{Forward: &out, Profile: p}
	if _, err := w.WriteString(b.View().Content); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func (b *bench) text(t testing.TB) string { return b.frame(t, colorprofile.NoTTY) }

func (b *bench) sees(t testing.TB, want ...string) {
	t.Helper()
	text := b.text(t)
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the frame lacks %q:\n%s", w, text)
		}
	}
}

func (b *bench) lacks(t testing.TB, not ...string) {
	t.Helper()
	text := b.text(t)
	for _, w := range not {
		if strings.Contains(text, w) {
			t.Errorf("the frame has %q:\n%s", w, text)
		}
	}
}

var sizes = [][2]int{{60, 15}, {80, 24}, {120, 40}, {200, 60}}

// picture compares a frame with its golden file: without colours at the smallest and at a
// usual size, and once in colour. TestFramesHoldAtAnySizeAndData covers all other sizes.
func picture(t *testing.T, b *bench, size [2]int, profile colorprofile.Profile) {
	t.Helper()
	checkFrame(t, b.Model, "drawn")
	if size == sizes[0] && profile <= colorprofile.ASCII || size == sizes[2] {
		golden.File(t, "testdata/"+t.Name()+".golden", []byte(b.frame(t, profile)+"\n"))
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	fleet := pagetest.NewSource(412, 90)
	for _, size := range sizes {
		for look, profile := range map[string]colorprofile.Profile{"plain": colorprofile.NoTTY, "dark": colorprofile.ANSI} {
			t.Run(fmt.Sprintf("%dx%d-%s", size[0], size[1], look), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, fleet, func(o *Options) { o.Theme = draw.Dark })
				b.resize(size[0], size[1])
				b.change()
				picture(t, b, size, profile)
			})
		}
	}
}
