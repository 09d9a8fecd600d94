package paint

import "testing"

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in    string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abcd", 1, "…"}, {"abcd", 0, ""}, {"abcd", -1, ""}, {"東京都", 5, "東京…"}, {"東京都", 4, "東…"}, {"", 0, ""},
	} {
		if got := Truncate(tt.in, tt.width); got != tt.want {
			t.Errorf("%q to %d: %q, want %q", tt.in, tt.width, got, tt.want)
		}
	}
}

func TestPaint(t *testing.T) {
	t.Parallel()
	if got := (Palette{}).Paint(Bad, "x"); got != "x" {
		t.Errorf("no palette: %q", got)
	}
	if got := Colours().Paint(Bad, "x"); got == "x" || Width(got) != 1 {
		t.Errorf("colours: %q", got)
	}
	if got := Colours().Paint(Plain, "x"); got != "x" {
		t.Errorf("plain: %q", got)
	}
}
