package draw

import (
	"cmp"
	"math"
	"slices"

	"cnictl/tui/show"
)

// Area is one band of a chart. NaN is a gap.
type Area struct {
	Name   string
	Role   Role
	Values []float64 // oldest first, one per sample
}

// Level is a line across a chart, such as a target or a limit. Values holds the level at
// each sample, NaN if there was none; nil if it was always Value.
type Level struct {
	Name   string
	Role   Role
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

// Lines draws the chart, with an axis at the left, the levels' names at the right and the areas'
// at the bottom.
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
	step, top := c.scale()
	rows, even := evenly(rows, int(math.Round(top/step)))
	if !even {
		step = top // its ends are at the right height at least
	}
	plot := c.Plot(width)
	axis := c.axis()
	labels := c.labels(width, top, rows)
	lines := make([]string, 0, height)
	for y := range rows {
		l := NewLine(s, width)
		label := ""
		for v := 0.0; v <= top; v += step {
			if c.row(v, top, rows) == y {
				label = number(v)
			}
		}
		l.Add(Faint, s.Fit(label, axis, true)).Add(Border, s.Pick("┤", "|"))
		c.plot(l, s, y, rows, plot, top)
		if v, ok := labels[y]; ok {
			l.Gap(1).Add(v.Role, v.label())
		}
		lines = append(lines, l.String())
	}
	return Exactly(append(lines, legend...), width, height)
}

// evenly returns how many rows to draw so that n steps of the axis are equally high, if that leaves
// out a quarter of the rows at most.
func evenly(rows, n int) (use int, even bool) {
	if n < 1 || rows <= n {
		return rows, false
	}
	use = (rows-1)/n*n + 1
	if 4*(rows-use) > rows {
		return rows, false
	}
	return use, true
}

func (l Level) label() string { return l.Name + " " + number(l.Value) }

// labelled is the least width of a chart with the names of the levels at its right.
const labelled = 44

// margin returns the width of the names of the levels at the right; 0 if they are in the legend.
func (c Chart) margin(width int) int {
	if width < labelled {
		return 0
	}
	n := 0
	for _, v := range c.Levels {
		n = max(n, Width(v.label())+1)
	}
	return n
}

// labels places the name of each level beside its line, or below if a higher one is there.
func (c Chart) labels(width int, top float64, rows int) map[int]Level {
	out := map[int]Level{}
	if c.margin(width) == 0 {
		return out
	}
	highest := slices.SortedStableFunc(slices.Values(c.Levels), func(a, b Level) int { return cmp.Compare(b.Value, a.Value) })
	next := 0
	for i, v := range highest {
		lowest := rows - len(highest) + i // so that the names below fit, too
		next = min(max(next, c.row(v.Value, top, rows)), lowest)
		out[next] = v
		next++
	}
	return out
}

// axis returns the width of the values at the left.
func (c Chart) axis() int {
	_, top := c.scale()
	return max(Width(number(top)), 2)
}

// Plot returns how many samples fit a width, between the axis and the names of the levels.
func (c Chart) Plot(width int) int { return max(width-c.axis()-1-c.margin(width), 0) }

// scale returns a round step of the axis, and the greatest value to draw: a multiple of it.
func (c Chart) scale() (step, top float64) {
	most := 1.0
	for _, l := range c.Levels {
		most = math.Max(most, l.Value)
		for _, v := range l.Values {
			if !math.IsNaN(v) {
				most = math.Max(most, v)
			}
		}
	}
	for i := range c.samples() {
		if sum := c.sum(i, len(c.Areas)); !math.IsNaN(sum) {
			most = math.Max(most, sum)
		}
	}
	return Axis(most)
}

// Axis returns a round step of an axis from 0, and a multiple of it that is at least the greatest value.
func Axis(most float64) (step, top float64) {
	const ticks = 4
	unit := math.Pow(10, math.Floor(math.Log10(most/ticks)))
	for _, m := range []float64{1, 2, 5, 10} {
		if step = math.Max(m*unit, 1); step*ticks >= most {
			break
		}
	}
	return step, math.Ceil(most/step) * step
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

// row returns the row of a value's line, 0 at the top. The lowest and the highest value are in the
// middle of their rows, as the line is.
func (c Chart) row(v, top float64, rows int) int {
	return min(max(rows-1-int(math.Round(v/top*float64(rows-1))), 0), rows-1)
}

// plot draws a row of the areas, with the levels on top.
func (c Chart) plot(l *Line, s Style, y, rows, width int, top float64) {
	samples := c.samples()
	per := top / float64(rows-1)
	low := (float64(rows-1-y) - 0.5) * per
	var run []byte
	was := inked{}
	flush := func() {
		if len(run) > 0 {
			was.add(l, s, string(run))
			run = run[:0]
		}
	}
	for x := range width {
		i := samples - width + x
		cell := inked{glyph: " ", on: Text}
		if i >= 0 {
			cell = c.cell(s, i, low, per)
		}
		for _, v := range slices.Backward(c.Levels) {
			if at := v.at(i); !math.IsNaN(at) && c.row(at, top, rows) == y {
				cell = cell.crossed(s, v.Role)
			}
		}
		if cell != was {
			flush()
			was = cell
		}
		run = append(run, cell.glyph...)
	}
	flush()
}

// inked is how a cell is drawn: a sign in a role, on a fill unless that is Text.
type inked struct {
	glyph string
	role  Role
	on    Role
	most  bool // the fill takes at least half of the cell
}

func (c inked) add(l *Line, s Style, text string) {
	if c.on == Text {
		l.Add(c.role, text)
		return
	}
	width := Width(text)
	l.Drawn(s.Theme.Filled(c.on).Paint(c.role, text), width)
}

// crossed returns the cell with a line across, which leaves the fill as it is: also that below another
// line.
func (c inked) crossed(s Style, role Role) inked {
	line := inked{glyph: s.Pick("─", "-"), role: role, most: c.most}
	switch {
	case !c.most || s.ASCII:
	case c.on != Text:
		line.role, line.on = Text, c.on
	case s.Theme.Coloured():
		line.role, line.on = Text, c.role // the colour of the line may be that of the fill
	case c.glyph == show.Used.Glyph || c.role == Selected:
		line.role = Selected // reversed: a line of the fill's colour would be a gap in it
	}
	return line
}

// cell returns what a sample shows in the band from low to low+per: the area that has most of it, as
// high as all of them.
func (c Chart) cell(s Style, i int, low, per float64) inked {
	out := inked{glyph: " "}
	within := func(v float64) float64 { return math.Min(math.Max(v-low, 0), per) }
	all := c.sum(i, len(c.Areas))
	if math.IsNaN(all) || all <= math.Max(low, 0) {
		return out
	}
	most, below := 0.0, within(0)
	for n := range c.Areas {
		upTo := within(c.sum(i, n+1))
		if upTo-below > most {
			most, out.role = upTo-below, c.Areas[n].Role
		}
		below = upTo
	}
	filled := within(all)
	out.most = filled >= per/2
	switch shape := sign(out.role); {
	case !out.most && (s.ASCII || !s.Theme.Coloured() && shape != show.Used): // a sign is a whole cell
		return inked{glyph: " "}
	case s.ASCII:
		out.glyph = shape.ASCII
	case !s.Theme.Coloured() && shape != show.Used:
		out.glyph = shape.Glyph
	case filled >= per:
		out.glyph = show.Used.Glyph
	default:
		out.glyph = show.SparkCell(filled, per, false)
	}
	return out
}

// legend names what is drawn, with the newest values. If the first line is full, it
// continues on a second.
func (c Chart) legend(s Style, width int) []string {
	lines := []*Line{NewLine(s, width)}
	add := func(r Role, sign, text string) {
		l := lines[len(lines)-1]
		if need := Width(sign) + 1 + Width(text); l.Room() < need && l.Room() < width && len(lines) < 2 {
			l = NewLine(s, width)
			lines = append(lines, l)
		}
		if !s.Linear {
			l.Add(r, sign).Gap(1)
		}
		l.Add(Text, text).Gap(2)
	}
	for _, a := range c.Areas {
		text := a.Name
		if n := len(a.Values); n > 0 && !math.IsNaN(a.Values[n-1]) {
			text += " " + number(a.Values[n-1])
		}
		shape := sign(a.Role)
		if s.Theme.Coloured() {
			shape.Glyph = show.Used.Glyph
		}
		add(a.Role, shape.Pick(s.ASCII), text)
	}
	if s.Linear || c.margin(width) == 0 {
		for _, v := range c.Levels {
			add(v.Role, s.Pick("─", "-"), v.label())
		}
	}
	var out []string
	for i, l := range lines {
		if i == len(lines)-1 && c.Span != "" && l.Room() >= Width(c.Span) {
			l.Gap(l.Room()-Width(c.Span)).Add(Faint, c.Span)
		}
		out = append(out, l.String())
	}
	return out
}
