package components

import (
	"testing"

	"cnictl/tui/draw"
)

// TestFrame_Widths: panes that need few rows give up rows, never columns. Each is readable at every
// width, side by side or stacked.
func TestFrame_Widths(t *testing.T) {
	t.Parallel()
	for width := 60; width <= 320; width += 5 {
		f := Frame{Top: true, Need: []int{3, 3}}
		var widths []int
		pane := func(weight int) Pane {
			return Pane{Title: "x", Weight: weight, Least: 2, Lines: func(_ draw.Style, w, h int) []string {
				widths = append(widths, w)
				return draw.Exactly(nil, w, h)
			}}
		}
		lines := f.Draw(draw.Style{Theme: draw.PlainTheme()}, width, 40, nil, []Pane{pane(3), pane(2), pane(3)})
		if len(lines) != 40 || len(widths) != 3 {
			t.Fatalf("%d lines, %d panes at %d", len(lines), len(widths), width)
		}
		if r := f.rects; r[0].Height != 3 || r[1].Y <= r[0].Y+r[0].Height {
			t.Errorf("the first pane is %+v, the next %+v, at %d", r[0], r[1], width)
		}
		for i, w := range widths {
			if w < min(width, 43) || i == 0 && w != width {
				t.Errorf("pane %d is %d wide at %d", i, w, width)
			}
		}
	}
}
