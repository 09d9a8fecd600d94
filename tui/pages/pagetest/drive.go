package pagetest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"cnictl/daemon/api/introspect"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/source"
	"cnictl/tui/source/sourcetest"
	"cnictl/tui/theme"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Sizes are those of terminals that every screen is looked at in, less the three lines
// of the app.
var Sizes = []struct{ Width, Height int }{{60, 12}, {80, 21}, {120, 37}, {200, 57}}

// Fleet is a fleet of the nodes above with ten samples of each.
func Fleet() *sourcetest.Fleet {
	f := sourcetest.New(0, 0)
	w := makeWorld()
	f.Wait(-100 * time.Second)
	for i := range 10 {
		for _, n := range w.nodes {
			f.Put(sampled(n, i, f.Now()))
		}
		f.Wait(10 * time.Second)
	}
	for _, n := range w.nodes {
		f.Put(n)
	}
	f.Documents = func(node string, want source.Want, _ source.Query) source.Detail {
		return answer(w.details, node, want, f.Now())
	}
	return f
}

// sampled is a node as it was some samples ago.
func sampled(n introspect.NodeIPAM, i int, now time.Time) introspect.NodeIPAM {
	if n.Summary == nil {
		return n
	}
	s := *n.Summary
	s.Cards = append([]introspect.CardSummary(nil), s.Cards...)
	for j := range s.Cards {
		c := &s.Cards[j]
		gone := min(c.Assigned, (10-i)/2)
		c.Assigned, c.Free = c.Assigned-gone, c.Free+gone
	}
	n.Summary, n.SampledAt = &s, &now
	return n
}

// answer gives the documents that a node has, errors for others.
func answer(all map[string]source.Detail, node string, want source.Want, now time.Time) source.Detail {
	d := source.Detail{Node: node, At: now, Errors: map[source.Want]introspect.NodeError{}}
	have, ok := all[node]
	fail := func(w source.Want, reason introspect.Reason, message string) {
		d.Errors[w] = introspect.NodeError{Node: node, Reason: reason, Message: message}
	}
	for w := source.Want(1); w <= want; w <<= 1 {
		if want&w == 0 {
			continue
		}
		if !ok || have.ENIs == nil && have.Plan == nil {
			fail(w, introspect.ReasonTimeout, "no answer within 5s")
			continue
		}
		found := true
		switch w {
		case source.WantENIs:
			d.ENIs, found = have.ENIs, have.ENIs != nil
		case source.WantPlan:
			d.Plan, found = have.Plan, have.Plan != nil
		case source.WantEvents:
			d.Events, found = have.Events, have.Events != nil
		case source.WantFailures:
			d.Failures, found = have.Failures, have.Failures != nil
		case source.WantLogs:
			d.Logs, found = have.Logs, have.Logs != nil
		case source.WantPod:
			d.Pod, found = have.Pod, have.Pod != nil
		case source.WantPods:
			d.Pods = have.Pods
		}
		if !found {
			fail(w, introspect.ReasonNoEndpoint, "the node does not know the path")
		}
	}
	return d
}

// Screen is a page that is driven.
type Screen struct {
	Page          pages.Page
	Fleet         *sourcetest.Fleet
	Width, Height int
	Theme         *theme.Theme
	ASCII, Wide   bool
	Faults        bool
	Opened        []pages.Open // what it asked the app to open
	Asked         []pages.Read
	Deaf          bool // answers do not come
}

// Open shows a page over a fleet, as the app does when it is entered.
func Open(p pages.Page, f *sourcetest.Fleet, width, height int) *Screen {
	s := &Screen{Page: p, Fleet: f, Width: width, Height: height, Theme: theme.Plain()}
	s.Send(pages.Changed{})
	_ = s.Frame()
	return s
}

// Context is what the page sees.
func (s *Screen) Context() pages.Context {
	now := s.Fleet.Now()
	return pages.Context{Width: s.Width, Height: s.Height, View: s.Fleet.View(), Source: s.Fleet, Theme: s.Theme, Now: now, Clock: now, ASCII: s.ASCII, Wide: s.Wide, FaultsOnly: s.Faults}
}

// Send gives the page a message and carries out what it asks for.
func (s *Screen) Send(msg tea.Msg) { s.run(s.Page.Update(s.Context(), msg)) }

// Do gives the page actions.
func (s *Screen) Do(actions ...string) {
	for _, a := range actions {
		s.Send(pages.Do{Action: a})
	}
}

// Wait lets time pass, a second at a time.
func (s *Screen) Wait(seconds int) {
	for range seconds {
		s.Fleet.Wait(time.Second)
		s.Send(pages.Second{Now: s.Fleet.Now()})
	}
}

func (s *Screen) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			s.run(c)
		}
	case pages.Open:
		s.Opened = append(s.Opened, msg)
	case pages.Read:
		s.Asked = append(s.Asked, msg)
		if !s.Deaf {
			d := s.Fleet.Documents(msg.Node, msg.Want, msg.Query)
			s.Send(pages.Loaded{ID: msg.ID, Want: msg.Want, Detail: d})
		}
	}
}

// Frame is what the page draws now.
func (s *Screen) Frame() []string { return s.Page.Lines(s.Context()) }

// Check holds a frame to the size of its room and to what a terminal may be given.
func Check(t *testing.T, s *Screen) {
	t.Helper()
	lines := s.Frame()
	if len(lines) != s.Height {
		t.Errorf("%dx%d: %d lines", s.Width, s.Height, len(lines))
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > s.Width {
			t.Errorf("%dx%d: line %d is %d wide: %q", s.Width, s.Height, i, w, l)
		}
		for _, r := range ansi.Strip(l) {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar || s.ASCII && r > unicode.MaxASCII {
				t.Errorf("%dx%d: line %d has %q: %q", s.Width, s.Height, i, r, l)
				break
			}
		}
	}
}

// Golden compares a frame with testdata/<test>/<name>.golden.
func Golden(t *testing.T, name string, lines []string) {
	t.Helper()
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l, " "))
		b.WriteByte('\n')
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	path := filepath.Join("testdata", test, name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", path, got)
	}
}

// Frames holds a page to golden files at every size, and in colour at one.
func Frames(t *testing.T, name string, open func() pages.Page, act func(*Screen)) {
	for _, size := range Sizes {
		t.Run(fmt.Sprintf("%s/%dx%d", name, size.Width, size.Height), func(t *testing.T) {
			t.Parallel()
			s := Open(open(), Fleet(), size.Width, size.Height)
			act(s)
			Check(t, s)
			Golden(t, fmt.Sprintf("%s-%dx%d", name, size.Width, size.Height), s.Frame())
		})
	}
}

// Coloured holds a page to golden files in the themes, with the colours of a terminal of
// sixteen.
func Coloured(t *testing.T, name string, open func() pages.Page, act func(*Screen)) {
	for _, th := range []string{"dark", "light"} {
		t.Run(name+"/"+th, func(t *testing.T) {
			t.Parallel()
			s := Open(open(), Fleet(), 120, 37)
			s.Theme = theme.New(th, theme.Terminal{})
			act(s)
			Check(t, s)
			var out bytes.Buffer
			w := &colorprofile.Writer{Forward: &out, Profile: colorprofile.ANSI}
			if _, err := w.WriteString(strings.Join(s.Frame(), "\n")); err != nil {
				t.Fatal(err)
			}
			Golden(t, name+"-"+th, strings.Split(out.String(), "\n"))
		})
	}
}

// Bears draws a page of every node at many sizes, in both alphabets, moved about.
func Bears(t *testing.T, open func(pages.Open) pages.Page, screen string) {
	moves := []string{keymap.Last, keymap.NextPane, keymap.Down, keymap.PageDown, keymap.First, keymap.NextPane, keymap.In, "zoom", keymap.Last, keymap.Up}
	for _, name := range append(All(), Absent, "") {
		t.Run(strings.ToValidUTF8(fmt.Sprintf("%+q", name), ""), func(t *testing.T) {
			t.Parallel()
			f := Fleet()
			o := pages.Open{Screen: screen, Node: name}
			if d := f.Documents(name, source.WantENIs, source.Query{}); len(d.ENIs) > 0 {
				o.ENI = d.ENIs[0].ID
				if c := d.ENIs[0].CIDRs; len(c) > 0 && len(c[0].Addresses) > 0 {
					a := c[0].Addresses[0]
					o.IP, o.Pod = a.Address.String(), a.PodNamespace+"/"+a.PodName
				}
			}
			s := Open(open(o), f, 120, 37)
			for i, size := range [][2]int{{0, 0}, {1, 1}, {7, 3}, {20, 40}, {60, 12}, {61, 13}, {80, 21}, {109, 9}, {110, 30}, {120, 37}, {200, 57}, {300, 4}} {
				s.Width, s.Height, s.ASCII, s.Wide = size[0], size[1], i%3 == 1, i%2 == 1
				if s.Height == 0 {
					_ = s.Frame()
					continue
				}
				for _, a := range moves {
					Check(t, s)
					s.Do(a)
				}
				s.Wait(2)
				s.Send(pages.Mouse{X: s.Width / 2, Y: s.Height / 2, Click: true})
				s.Send(pages.Mouse{X: 1, Y: s.Height - 1, Double: true})
				s.Send(pages.Mouse{X: 1, Y: 2, Wheel: 3})
				s.Send(pages.Changed{})
				Check(t, s)
			}
		})
	}
}

// Keys holds the page's keys: none twice, none of the app's row, all with words for help.
func Keys(t *testing.T, p pages.Page) {
	t.Helper()
	keys, err := keymap.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, b := range p.Keys() {
		if b.Help().Desc == "" || b.Help().Key == "" || len(b.Help().Desc) > 26 {
			t.Errorf("%s: help is %q %q", b.Action, b.Help().Key, b.Help().Desc)
		}
		for _, k := range b.Keys() {
			if seen[k] {
				t.Errorf("key %q is bound twice", k)
			}
			seen[k] = true
			if got := keys.Action(k, p.Keys()); got != b.Action {
				t.Errorf("key %q does %q, want %q: it shadows the app's row", k, got, b.Action)
			}
		}
	}
}
