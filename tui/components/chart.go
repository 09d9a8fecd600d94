package components

import (
	"math"
	"slices"

	"cnictl/daemon/fleet/show"
	"cnictl/tui/theme"
)

// Area is one band of a chart. NaN is a gap.
type Area struct {
	Name   string
	Role   theme.Role
	Values []float64 // oldest first, one per sample
}

// Level is a line across a chart, such as a target or a limit. Values holds the level at
// each sample, NaN if there was none; nil if it was always Value.
type Level struct {
	Name   string
	Role   theme.Role
	Value  float64 // the current value
	Values []float64
}

// at returns the level at a sample.
func (l Level) at(i int) float64 {
	switch {
	case l.Values == nil:
		return l.Value
	case i < 0 || i >= len(l.Values):
		return math.NaN()
	}
	return l.Values[i]
}

// Chart stacks areas over time, with levels as lines across. The newest sample is at the
// right.
type Chart struct {
	Areas  []Area
	Levels []Level
	Span   string // time that the width covers, shown at the bottom: "15m"
}

// Lines draws the chart, with an axis at the left and the names at the bottom.
func (c Chart) Lines(s Style, width, height int) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	legend := c.legend(s, width)
	rows := height - len(legend)
	switch {
	case s.Linear:
		return legend
	case rows < 2:
		return Exactly(legend, width, height)
	}
	top := c.top()
	plot := c.Plot(width)
	axis := width - plot - 1
	lines := make([]string, 0, height)
	for y := range rows {
		l := NewLine(s, width)
		label := ""
		switch y {
		case 0:
			label = number(top)
		case rows - 1:
			label = "0"
		}
		for _, v := range c.Levels {
			if c.row(v.Value, top, rows) == y && (y < rows-1 || v.Value >= top/2/float64(rows)) {
				label = number(v.Value) // the value of the level, not of the end of the row
			}
		}
		l.Add(theme.Faint, s.Fit(label, axis, true)).Add(theme.Border, s.Pick("┤", "|"))
		c.plot(l, s, y, rows, plot, top)
		lines = append(lines, l.String())
	}
	return Exactly(append(lines, legend...), width, height)
}

// Plot returns how many samples fit a width, beside the axis.
func (c Chart) Plot(width int) int { return max(width-max(Width(number(c.top())), 2)-1, 0) }

// top returns the greatest value to draw, rounded up.
func (c Chart) top() float64 {
	top := 1.0
	for _, l := range c.Levels {
		top = math.Max(top, l.Value)
		for _, v := range l.Values {
			if !math.IsNaN(v) {
				top = math.Max(top, v)
			}
		}
	}
	for i := range c.samples() {
		if sum := c.sum(i, len(c.Areas)); !math.IsNaN(sum) {
			top = math.Max(top, sum)
		}
	}
	step := math.Pow(10, math.Floor(math.Log10(top)))
	for _, m := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if m*step >= top {
			return math.Ceil(m * step)
		}
	}
	return top
}

func (c Chart) samples() int {
	n := 0
	for _, a := range c.Areas {
		n = max(n, len(a.Values))
	}
	return n
}

// sum adds the first n areas of a sample; NaN if one is unknown.
func (c Chart) sum(i, n int) float64 {
	sum := 0.0
	for _, a := range c.Areas[:n] {
		if i >= len(a.Values) {
			return math.NaN()
		}
		sum += a.Values[i]
	}
	return sum
}

// row returns the row of a value's line, 0 at the top.
func (c Chart) row(v, top float64, rows int) int {
	return min(max(rows-1-int(math.Round(v/top*float64(rows)-0.5)), 0), rows-1)
}

func (c Chart) plot(l *Line, s Style, y, rows, width int, top float64) {
	samples := c.samples()
	low := float64(rows-1-y) / float64(rows) * top
	spare := show.Free.Pick(s.ASCII)
	per := top / float64(rows)
	run, runRole, runCell := 0, theme.Text, ""
	flush := func() { l.Add(runRole, repeat(runCell, run)); run = 0 }
	for x := range width {
		role, cell := theme.Text, " "
		i := samples - width + x
		if i >= 0 {
			role, cell = c.cell(s, i, low, per)
		}
		for _, v := range slices.Backward(c.Levels) {
			// A level shows through what is free, but not through what is used.
			if at := v.at(i); (cell == " " || cell == spare) && !math.IsNaN(at) && c.row(at, top, rows) == y {
				role, cell = v.Role, s.Pick("╌", "-")
			}
		}
		if run > 0 && (role != runRole || cell != runCell) {
			flush()
		}
		runRole, runCell = role, cell
		run++
	}
	flush()
}

// cell returns what a sample shows in the band from low to low+per.
func (c Chart) cell(s Style, i int, low, per float64) (theme.Role, string) {
	for n := 1; n <= len(c.Areas); n++ {
		sum := c.sum(i, n)
		if math.IsNaN(sum) || sum <= low {
			continue
		}
		role := c.Areas[n-1].Role
		last := n == len(c.Areas)
		if !last && sum < low+per/2 {
			continue // most of the band belongs to the next area
		}
		full := sum >= low+per || !last && sum >= low+per/2
		if s.ASCII {
			return role, sign(role).ASCII
		}
		if full {
			return role, sign(role).Glyph
		}
		return role, show.SparkCell(sum-low, per, false)
	}
	return theme.Text, " "
}

// legend names what is drawn, with the newest values. If the first line is full, it
// continues on a second.
func (c Chart) legend(s Style, width int) []string {
	lines := []*Line{NewLine(s, width)}
	add := func(r theme.Role, sign, text string) {
		l := lines[len(lines)-1]
		if need := Width(sign) + 1 + Width(text); l.Room() < need && l.Room() < width && len(lines) < 2 {
			l = NewLine(s, width)
			lines = append(lines, l)
		}
		if !s.Linear {
			l.Add(r, sign).Gap(1)
		}
		l.Add(theme.Text, text).Gap(2)
	}
	for _, a := range c.Areas {
		value := "-"
		if n := len(a.Values); n > 0 && !math.IsNaN(a.Values[n-1]) {
			value = number(a.Values[n-1])
		}
		add(a.Role, sign(a.Role).Pick(s.ASCII), a.Name+" "+value)
	}
	for _, v := range c.Levels {
		add(v.Role, s.Pick("╌", "-"), v.Name+" "+number(v.Value))
	}
	var out []string
	for i, l := range lines {
		if i == len(lines)-1 && c.Span != "" && l.Room() >= Width(c.Span) {
			l.Gap(l.Room()-Width(c.Span)).Add(theme.Faint, c.Span)
		}
		out = append(out, l.String())
	}
	return out
}
