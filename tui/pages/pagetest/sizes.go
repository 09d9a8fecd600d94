package pagetest

import (
	"fmt"
	"strings"
	"testing"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// CheckAllSizes draws a page for every node at many sizes, in Unicode and ASCII, with and without
// colour, and after many moves.
func CheckAllSizes(t *testing.T, open func(pages.Open) pages.Page, screen string) {
	moves := []string{keymap.Last, keymap.NextPane, keymap.Down, keymap.PageDown, keymap.First, keymap.NextPane, keymap.In, "zoom", keymap.Last, keymap.Up}
	for _, name := range append(All(), Absent, "") {
		t.Run(strings.ToValidUTF8(fmt.Sprintf("%+q", name), ""), func(t *testing.T) {
			t.Parallel()
			f := Fleet()
			o := pages.Open{Screen: screen, Node: name}
			if d := f.Documents(name, watch.WantENIs, watch.Query{}); len(d.ENIs) > 0 {
				o.ENI = d.ENIs[0].ID
				if c := d.ENIs[0].CIDRs; len(c) > 0 && len(c[0].Addresses) > 0 {
					a := c[0].Addresses[0]
					o.IP, o.Pod = a.Address.String(), a.PodNamespace+"/"+a.PodName
				}
			}
			s := Open(open(o), f, 120, 37)
			for i, size := range [][2]int{{0, 0}, {1, 1}, {7, 3}, {20, 40}, {60, 12}, {61, 13}, {80, 21}, {109, 9}, {110, 30}, {120, 37}, {200, 57}, {300, 4}} {
				s.Width, s.Height, s.ASCII, s.Wide = size[0], size[1], i%3 == 1, i%2 == 1
				if s.Theme = draw.PlainTheme(); i%4 >= 2 {
					s.Theme = draw.NewTheme(draw.Dark, draw.Terminal{Colour: true, True: i%4 == 3})
				}
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

// Keys checks the page's keys: none is bound twice or reserved by the app, and all have help.
func Keys(t *testing.T, p pages.Page) {
	t.Helper()
	keys, err := keymap.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, b := range keymap.Page(p.Name()) {
		if b.Help == "" || b.Shown == "" || len(b.Help) > 26 {
			t.Errorf("%s: help is %q %q", b.Action, b.Shown, b.Help)
		}
		for _, k := range b.Keys {
			if seen[k] {
				t.Errorf("key %q is bound twice", k)
			}
			seen[k] = true
			if got := keys.Action(k, keymap.Page(p.Name())); got != b.Action {
				t.Errorf("key %q does %q, want %q: it shadows the app's row", k, got, b.Action)
			}
		}
	}
}
