package paint

import "testing"

func TestPaint(t *testing.T) {
	t.Parallel()
	if got := Palette(nil).Paint(Bad, "x"); got != "x" {
		t.Errorf("no palette: %q", got)
	}
	if got := Colours().Paint(Bad, "x"); got == "x" || Width(got) != 1 {
		t.Errorf("colours: %q", got)
	}
	if got := Colours().Paint(Plain, "x"); got != "x" {
		t.Errorf("plain: %q", got)
	}
}
