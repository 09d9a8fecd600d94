package draw

import (
	"math"
	"strings"
	"testing"
)

// TestChart_LevelsAsTheyWere: a target that changed is drawn at its value of the time, on top of
// what was held, and not where nothing was known.
func TestChart_LevelsAsTheyWere(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	c := Chart{
		Areas: []Area{
			{"used", BarUsed, []float64{2, 2, 2, nan, 2, 2}}, {"cooling", BarCooling, []float64{0, 0, 0, 0, 0, 0}},
			{"free", BarFree, []float64{4, 0, 0, 0, 0, 0}},
		},
		Levels: []Level{{"WARM", Good, 8, []float64{4, 4, 4, nan, 8, 8}}},
	}
	got := c.Lines(Style{Theme: PlainTheme(), ASCII: true}, 3+6, 6)
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

// TestChart_Axis: the axis has round steps, the names of the levels stand at the right of their
// lines, and two never share a row.
func TestChart_Axis(t *testing.T) {
	t.Parallel()
	c := Chart{
		Areas:  []Area{{"used", BarUsed, []float64{42}}},
		Levels: []Level{{"WARM", Good, 47, nil}, {"MINIMUM", Info, 46, nil}, {"max-pods", Warn, 58, nil}},
	}
	lines := c.Lines(Style{Theme: PlainTheme(), ASCII: true}, 60, 9)
	var axis, names []string
	for _, l := range lines[:len(lines)-1] {
		label, rest, _ := strings.Cut(l, "|")
		if label = strings.TrimSpace(label); label != "" {
			axis = append(axis, label)
		}
		if name := strings.TrimSpace(strings.TrimLeft(rest, " -#")); name != "" {
			names = append(names, name)
		}
	}
	if got := strings.Join(axis, " "); got != "60 40 20 0" {
		t.Errorf("the axis is %s", got)
	}
	if got := strings.Join(names, ", "); got != "max-pods 58, WARM 47, MINIMUM 46" {
		t.Errorf("the levels are %s", got)
	}
	low := Chart{Areas: c.Areas, Levels: []Level{{"a", Good, 1, nil}, {"b", Good, 1, nil}}}
	if text := strings.Join(low.Lines(Style{Theme: PlainTheme(), ASCII: true}, 60, 9), "\n"); !strings.Contains(text, " a 1") || !strings.Contains(text, " b 1") {
		t.Errorf("a name is missing:\n%s", text)
	}
}
