package components

import (
	"math"
	"strings"
	"testing"

	"cnictl/tui/theme"
)

// TestChart_LevelsAsTheyWere: a target that changed is drawn at its value of the time, on top of
// what was held, and not where nothing was known.
func TestChart_LevelsAsTheyWere(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	c := Chart{
		Areas: []Area{
			{"used", theme.BarUsed, []float64{2, 2, 2, nan, 2, 2}}, {"cooling", theme.BarCooling, []float64{0, 0, 0, 0, 0, 0}},
			{"free", theme.BarFree, []float64{4, 0, 0, 0, 0, 0}},
		},
		Levels: []Level{{"WARM", theme.Good, 8, []float64{4, 4, 4, nan, 8, 8}}},
	}
	got := c.Lines(Style{Theme: theme.Plain(), ASCII: true}, 3+6, 6)
	want := []string{" 8|    --", " 4|---", " 2|=", " 0|### ##"}
	for i, l := range want {
		if strings.TrimRight(got[i], " ") != l {
			t.Errorf("line %d is %q, want %q", i, got[i], l)
		}
	}
	if n := c.Plot(9); n != 6 {
		t.Errorf("room for %d samples, want 6", n)
	}
}
