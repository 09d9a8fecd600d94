package draw

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestThemesSayTheSameWithoutColour(t *testing.T) {
	t.Parallel()
	for _, name := range Themes() {
		mono := NewTheme(name, Terminal{})
		for r := Text; r < roles; r++ {
			on := mono.On(r)
			for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(on, "\x1b["), "m"), ";") {
				if on != "" && part != "1" && part != "4" && part != "7" {
					t.Errorf("%s: role %d has more than bold, underline and reverse without colours: %q", name, r, on)
				}
			}
		}
		if mono.Paint(Selected, "x") == "x" || mono.Paint(Bad, "x") == mono.Paint(Good, "x") || mono.Paint(HeaderSorted, "x") == mono.Paint(Header, "x") {
			t.Errorf("%s: without colours the roles look the same", name)
		}
	}
}

func TestEveryStyleIsEnded(t *testing.T) {
	t.Parallel()
	for _, name := range Themes() {
		for _, term := range []Terminal{{}, {Colour: true}, {Colour: true, True: true}, {Colour: true, True: true, Light: true}} {
			th := NewTheme(name, term)
			for r := Text; r < roles; r++ {
				if (th.On(r) == "") != (th.Off(r) == "") {
					t.Errorf("%s %+v: role %d begins with %q and ends with %q", name, term, r, th.On(r), th.Off(r))
				}
			}
			if !term.True && strings.Contains(strings.Join(th.on[:], ""), "8;2;") {
				t.Errorf("%s: 24-bit colours on a terminal that has none", name)
			}
		}
	}
	if NewTheme(Auto, Terminal{Colour: true, Light: true}).Name != Light || NewTheme("", Terminal{Colour: true}).Name != Dark {
		t.Error("auto does not follow the background")
	}
	if CheckTheme("pink") == nil || CheckTheme(Mono) != nil || CheckTheme("") != nil || CheckTheme("deuteranopia") != nil || NewTheme("deuteranopia", Terminal{Colour: true}).Name != Deuteranopia {
		t.Error("names are not checked")
	}
}

// TestTint: the row under the cursor keeps its colours and is recognisable on every terminal.
func TestTint(t *testing.T) {
	t.Parallel()
	for _, name := range Themes() {
		for _, term := range []Terminal{{}, {Light: true}, {Colour: true}, {Colour: true, Light: true}, {Colour: true, Many: true}, {Colour: true, Many: true, True: true}, {Colour: true, Many: true, True: true, Light: true}} {
			th := NewTheme(name, term)
			tinted := th.Tinted()
			for r := Text; r < roles; r++ {
				if same := tinted.On(r) == th.On(r) && r != Selected && r != HeaderSorted; same || tinted.Off(r) == "" {
					t.Errorf("%s %+v: role %d looks the same under the cursor: %q", name, term, r, tinted.On(r))
				}
			}
			if name != Mono && term.Colour && (tinted.On(Bad) == tinted.On(Text) || tinted.On(BarUsed) == tinted.On(BarFree)) {
				t.Errorf("%s %+v: the row under the cursor has lost its colours", name, term)
			}
		}
	}
	if PlainTheme().Tinted().On(Text) != "" {
		t.Error("plain has an escape")
	}
}

func TestPaint(t *testing.T) {
	t.Parallel()
	if got := PlainTheme().Paint(Bad, "x"); got != "x" {
		t.Errorf("%q", got)
	}
	if got := NewTheme(Dark, Terminal{Colour: true}).Paint(Bad, ""); got != "" {
		t.Errorf("%q", got)
	}
}

// TestTextIsLegible: text of every theme is legible on the background it is meant for. 24-bit
// colours have a contrast of 4.5 to black or white, and none of the 16 equals the background.
func TestTextIsLegible(t *testing.T) {
	t.Parallel()
	checked := 0
	decoration := map[Role]bool{Border: true, BorderFocused: true, BarUsed: true, BarCooling: true, BarFree: true, BarRoom: true, Selected: true}
	for _, name := range Themes() {
		for _, light := range []bool{false, true} {
			variant := name
			switch {
			case name == Auto, name == Light && !light, name == Dark && light:
				continue
			case light:
				variant = onLight(name)
			}
			for role, style := range styles(variant, true) {
				c := style.GetForeground()
				if decoration[role] || c == nil || fmt.Sprintf("%T", c) != "color.RGBA" {
					continue
				}
				checked++
				r, g, b, _ := c.RGBA()
				l := luminance(r, g, b)
				contrast := (l + 0.05) / 0.05
				if light {
					contrast = 1.05 / (l + 0.05)
				}
				if contrast < 4.5 {
					t.Errorf("%s: role %d has a contrast of %.1f", variant, role, contrast)
				}
			}
			for role, style := range tint(variant, Terminal{Colour: true, Many: true, True: true, Light: light}, styles(variant, true)) {
				c, fill := style.GetForeground(), style.GetBackground()
				if decoration[role] || fmt.Sprintf("%T", c) != "color.RGBA" || fmt.Sprintf("%T", fill) != "color.RGBA" {
					continue
				}
				r, g, b, _ := c.RGBA()
				over := luminance(r, g, b) + 0.05
				r, g, b, _ = fill.RGBA()
				under := luminance(r, g, b) + 0.05
				if contrast := max(over, under) / min(over, under); contrast < 4.5 {
					t.Errorf("%s: role %d has a contrast of %.1f under the cursor", variant, role, contrast)
				}
			}
			for role, c := range palette(variant) {
				if light && (c == "15" || c == "11" || c == "7") || !light && c == "0" {
					t.Errorf("%s: role %d has the background's colour %s", variant, role, c)
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("%d colours were looked at", checked)
	}
}

// luminance is the relative luminance defined by WCAG.
func luminance(r, g, b uint32) float64 {
	part := func(v uint32) float64 {
		x := float64(v) / 0xffff
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*part(r) + 0.7152*part(g) + 0.0722*part(b)
}

// TestClean: of the escape sequences only the theme's own are left, also those under the cursor
// and of outdated values. Nothing else that could control a terminal is left as it is.
func TestClean(t *testing.T) {
	t.Parallel()
	for _, name := range Themes() {
		th := NewTheme(name, Terminal{Colour: true, Many: true, True: true})
		painted := th.Paint(Bad, "down") + " " + th.Tinted().Paint(Good, "ok") + th.Faded().Paint(Text, "old") + th.Faded().Tinted().Paint(Key, "k") + th.Filled(BarFree).Paint(Text, "-")
		if got := th.Clean(painted); got != painted {
			t.Errorf("%s: %q became %q", name, painted, got)
		}
		want := `a\x1b[5;31mb\x1b]0;x\ac\u009bd\u202e\n` + th.Paint(Warn, `\t`) + `\x1b`
		if got := th.Clean("a\x1b[5;31mb\x1b]0;x\ac\u009bd\u202e\n" + th.Paint(Warn, "\t") + "\x1b"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := (*Theme)(nil).Clean("\x1b[mé"); got != `\x1b[mé` {
		t.Errorf("%q", got)
	}
}
