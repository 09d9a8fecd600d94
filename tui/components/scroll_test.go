package components

import (
	"strings"
	"testing"
	"time"

	"cnictl/tui/draw"
)

func TestScroll(t *testing.T) {
	t.Parallel()
	sheet := draw.NewSheet(draw.Style{Theme: draw.PlainTheme()}, 30)
	for i := range 20 {
		sheet.Add(draw.T(draw.Text, strings.Repeat("x", i+1)))
	}
	var s Scroll
	if out := s.Window(sheet, 5); !strings.Contains(out[4], "16 more lines") {
		t.Errorf("%q", out)
	}
	s.Do("last", time.Time{})
	if out := s.Window(sheet, 5); strings.TrimSpace(out[4]) != strings.Repeat("x", 20) {
		t.Errorf("%q", out)
	}
	s.Do("page-up", time.Time{})
	if out := s.Window(sheet, 5); strings.TrimSpace(out[0]) != strings.Repeat("x", 11) {
		t.Errorf("%q", out)
	}
}
