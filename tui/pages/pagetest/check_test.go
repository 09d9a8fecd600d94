package pagetest

import (
	"testing"

	"cnictl/tui/draw"
)

// TestFaults: anything harmful that a node could send a terminal is found, including colours of no
// theme. What the theme itself writes is not.
func TestFaults(t *testing.T) {
	t.Parallel()
	dark := draw.NewTheme(draw.Dark, draw.Terminal{Colour: true})
	for name, x := range map[string]struct {
		line  string
		th    *draw.Theme
		ascii bool
		want  int
	}{
		"text":                {"ip-10-0-3-17", draw.PlainTheme(), false, 0},
		"the theme's colour":  {dark.Paint(draw.Bad, "down"), dark, false, 0},
		"a colour in plain":   {dark.Paint(draw.Bad, "down"), draw.PlainTheme(), false, 1},
		"another colour":      {"\x1b[5;31mdown\x1b[m", dark, false, 1},
		"clear the screen":    {"a\x1b[2Jb", dark, false, 1},
		"a title":             {"a\x1b]0;x\ab", dark, false, 1},
		"an eight-bit escape": {"a\u009b31mb", dark, false, 1},
		"bidi":                {"a\u202eb", dark, false, 1},
		"of no width":         {"a\u200bb", dark, false, 1},
		"no UTF-8":            {"a\xffb", dark, false, 2},
		"too wide":            {"0123456789012345", dark, false, 1},
		"no ASCII":            {"a…", dark, true, 1},
	} {
		if got := Faults([]string{x.line}, 12, 1, x.th, x.ascii); len(got) != x.want {
			t.Errorf("%s: %d faults, want %d: %q", name, len(got), x.want, got)
		}
	}
	if got := Faults(nil, 12, 1, dark, false); len(got) != 1 {
		t.Errorf("too few lines: %q", got)
	}
}
