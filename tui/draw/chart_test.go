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
	want := []string{" 8|    --", "  |---", "  |=", " 0|### ##"}
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
	for _, l := range lines {
		label, rest, drawn := strings.Cut(l, "|")
		if !drawn { // the legend
			continue
		}
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

// TestChart_AxisIsEven: the values at the axis are equally far apart, or only its ends are named.
func TestChart_AxisIsEven(t *testing.T) {
	t.Parallel()
	for height := 5; height < 16; height++ {
		for _, most := range []float64{4, 29, 58, 110, 234} {
			c := Chart{Areas: []Area{{"used", BarUsed, []float64{most}}}}
			var at []int
			for y, l := range c.Lines(Style{Theme: PlainTheme(), ASCII: true}, 40, height) {
				if label, _, drawn := strings.Cut(l, "|"); drawn && strings.TrimSpace(label) != "" {
					at = append(at, y)
				}
			}
			if len(at) < 2 || at[0] != 0 {
				t.Fatalf("%d rows to %v: labels at %v", height, most, at)
			}
			for i := 2; i < len(at); i++ {
				if at[i]-at[i-1] != at[1]-at[0] {
					t.Errorf("%d rows to %v: labels at %v", height, most, at)
				}
			}
		}
	}
}

// TestChart_LinesLeaveTheArea: a cell that lines cross, one or two, still has the colour of its area, so
// that the area has no holes; without colours the line is reversed.
func TestChart_LinesLeaveTheArea(t *testing.T) {
	t.Parallel()
	of := func(levels ...Level) Chart {
		return Chart{Areas: []Area{{"used", BarUsed, []float64{8}}}, Levels: levels}
	}
	for _, levels := range [][]Level{{{"a", Good, 4, nil}}, {{"a", Good, 4, nil}, {"b", Info, 4, nil}}} {
		theme := NewTheme(Dark, Terminal{Colour: true})
		lines := strings.Join(of(levels...).Lines(Style{Theme: theme}, 8, 8), "\n")
		if !strings.Contains(lines, theme.Filled(BarUsed).Paint(Text, "─")) {
			t.Errorf("%d lines make a hole:\n%q", len(levels), lines)
		}
		mono := NewTheme(Mono, Terminal{})
		if lines := strings.Join(of(levels...).Lines(Style{Theme: mono}, 8, 8), "\n"); !strings.Contains(lines, mono.Paint(Selected, "─")) {
			t.Errorf("%d lines make a hole without colours:\n%q", len(levels), lines)
		}
	}
}
