package pagetest

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// Check verifies a frame's size and that it is safe for a terminal.
func Check(t *testing.T, s *Screen) {
	t.Helper()
	for _, fault := range Faults(s.Frame(), s.Width, s.Height, s.Theme, s.ASCII) {
		t.Error(fault)
	}
}

// Faults lists what is wrong with a frame. It must have exactly height lines, none wider
// than width, no escape sequences except those of the theme, byte by byte, and no other
// control characters.
func Faults(lines []string, width, height int, th *draw.Theme, ascii bool) []string {
	var faults []string
	say := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%dx%d: ", width, height)+fmt.Sprintf(format, args...))
	}
	if len(lines) != height {
		say("%d lines", len(lines))
	}
	own := sequences(th)
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > width {
			say("line %d is %d wide: %q", i, w, l)
		}
		if !utf8.ValidString(l) {
			say("line %d is no UTF-8: %q", i, l)
		}
		for _, r := range without(l, own) {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar || ascii && r > unicode.MaxASCII {
				say("line %d has %q: %q", i, r, l)
				break
			}
		}
	}
	return faults
}

// sequences returns the escape sequences that a theme puts around text, also under the cursor and
// on the bars of charts.
func sequences(th *draw.Theme) []string {
	var own []string
	for _, of := range []*draw.Theme{th, th.Tinted(), th.Filled(draw.BarUsed), th.Filled(draw.BarCooling), th.Filled(draw.BarFree)} {
		for r := draw.Text; r <= draw.Node6; r++ {
			for _, sequence := range []string{of.On(r), of.Off(r)} {
				if sequence != "" {
					own = append(own, sequence)
				}
			}
		}
	}
	return own
}

// without removes the theme's sequences. Anything that only resembles one stays.
func without(line string, own []string) string {
	var b strings.Builder
	for line != "" {
		longest := 0
		for _, sequence := range own {
			if strings.HasPrefix(line, sequence) {
				longest = max(longest, len(sequence))
			}
		}
		if longest == 0 {
			b.WriteByte(line[0])
			longest = 1
		}
		line = line[longest:]
	}
	return b.String()
}

// WholeFleet checks that the page's first line is about the fleet: neither a filter nor faults-only
// mode changes it.
func WholeFleet(t *testing.T, page pages.Page) {
	t.Helper()
	s := Open(page, Fleet(), 120, 37)
	want := s.Frame()[0]
	list, ok := s.Page.(interface{ List() components.List })
	if !ok {
		t.Fatal("the page has no list")
	}
	for _, text := range []string{"re:^no such row$", ""} {
		if err := list.List().SetFilter(text); err != nil {
			t.Fatal(err)
		}
		list.List().SetFaults(text == "")
		s.Wait(5)
		if got := s.Frame()[0]; got != want {
			t.Errorf("filter %q, faults only %v: %q, want %q", text, list.List().Faults(), got, want)
		}
	}
}
