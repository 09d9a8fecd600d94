package components

import (
	"cmp"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"cnictl/tui/draw"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

const (
	gutter = 2
	widest = 48 // most cells of a column; text from a node may be long
	margin = 2  // cursor and mark

	lastLeast = 17 // least cells of a text column at the right
)

// layout is the placement of the columns. Widths grow at once, but shrink only when the
// terminal's width or the user's choice of rows changes, so that columns do not jump while
// values change.
type layout struct {
	width   int
	columns []placed
	grown   map[string]int // the greatest width that each column has needed since forget
	widths  map[string]int // of this frame: grown, narrowed to fit. Not kept, so that drawing twice gives the same frame
}

type placed struct {
	name     string
	x, width int
}

func (l *layout) forget() { l.grown = nil }

func (l *layout) columnAt(x int) string {
	for _, c := range l.columns {
		if x >= c.x && x < c.x+c.width+gutter {
			return c.name
		}
	}
	return ""
}

// Lines draws the header and the window. It remembers the height, which page down moves by.
func (t *Table[T]) Lines(s draw.Style, width, height int) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	t.page = max(height-1, 1)
	t.clamp()
	lines := make([]string, 0, height)
	visible := t.Visible()
	columns, cells := t.place(s, width, visible)
	lines = append(lines, t.header(s, width, columns))
	for i, r := range visible {
		if len(lines) == height {
			break
		}
		lines = append(lines, t.line(s, width, r, columns, cells[i], t.top+i == t.cursor))
	}
	if len(visible) == 0 && len(lines) < height && t.o.Empty != "" {
		says := t.o.Empty
		if len(t.all) > 0 {
			says = "no match (esc clears the filter)"
			if t.faults && t.text == "" {
				says = "no " + cmp.Or(t.o.Rows, "rows") + " with faults (f: show all)"
			}
		}
		lines = append(lines, draw.NewLine(s, width).Gap(margin).Add(draw.Faint, says).String())
	}
	return draw.Exactly(lines, width, height)
}

// place selects the columns for a width and formats the cells of the visible rows.
func (t *Table[T]) place(s draw.Style, width int, visible []T) ([]query.Column[T], [][]string) {
	if t.layout.width != width {
		t.layout.width = width
		t.layout.forget()
	}
	if t.layout.grown == nil {
		t.layout.grown = map[string]int{}
	}
	columns := t.shownColumns()
	if s.Linear {
		columns = slices.DeleteFunc(columns, func(c query.Column[T]) bool { _, drawn := t.o.Drawn[c.Name]; return drawn })
	}
	cells := make([][]string, len(visible))
	flat := make([]string, len(visible)*len(columns))
	for i := range cells {
		cells[i], flat = flat[:len(columns):len(columns)], flat[len(columns):]
	}
	for j, c := range columns {
		need := max(draw.Width(c.Header)+1, c.Least) // room for the sort arrow
		if drawn, ok := t.o.Drawn[c.Name]; ok {
			need = max(need, drawn)
		} else {
			most := widest
			if limit, ok := t.o.Limits[c.Name]; ok {
				most = limit.Most
			}
			for i, r := range visible {
				cells[i][j] = t.shownText(r, c)
				need = max(need, min(draw.Width(cells[i][j]), most))
			}
		}
		t.layout.grown[c.Name] = max(t.layout.grown[c.Name], need)
	}
	t.layout.widths = maps.Clone(t.layout.grown)
	keep := t.fit(width, columns)
	t.grow(width, columns, keep)
	t.layout.columns = t.layout.columns[:0]
	x := margin
	out := columns[:0]
	for j, c := range columns {
		if !keep[j] {
			continue
		}
		w := min(t.layout.widths[c.Name], max(width-x, 0))
		t.layout.columns = append(t.layout.columns, placed{c.Name, x, w})
		x += w + gutter
		for i := range cells {
			cells[i][len(out)] = cells[i][j]
		}
		out = append(out, c)
	}
	if n := len(out); n > 0 && !out[n-1].Right {
		last := &t.layout.columns[n-1]
		last.width = max(width-last.x, 0)
	}
	return out, cells
}

// shownText returns the text shown in a cell. What could control the terminal is escaped.
func (t *Table[T]) shownText(row T, c query.Column[T]) string {
	if t.o.Show != nil {
		if text, ok := t.o.Show(row, c.Name); ok {
			return show.Safe(text)
		}
	}
	if c.Number != nil && c.Right {
		return draw.Counts(c.Text(row))
	}
	return show.Safe(c.Text(row))
}

// needs returns the width that a column keeps before others are dropped. The last column,
// if it is text, takes what is left.
func (t *Table[T]) needs(i int, columns []query.Column[T]) int {
	c := columns[i]
	if w := t.layout.widths[c.Name]; i < len(columns)-1 || c.Right {
		return w
	}
	return min(t.layout.widths[c.Name], max(c.Least, lastLeast, draw.Width(c.Header)+1, t.o.Limits[c.Name].Narrow))
}

// fit selects the columns. Wide columns get only the room that the columns of the narrow
// table leave; the sort column always stays. Columns that are never dropped are narrowed
// to their useful minimum, the widest first.
func (t *Table[T]) fit(width int, columns []query.Column[T]) []bool {
	keep := make([]bool, len(columns))
	total := margin - gutter
	for i, c := range columns {
		if keep[i] = !c.Wide || t.sorts(c); keep[i] {
			total += t.needs(i, columns) + gutter
		}
	}
	for i, c := range columns {
		if i == len(columns)-1 && !c.Right {
			continue // it takes what is left anyway
		}
		if limit, ok := t.o.Limits[c.Name]; ok && total > width {
			cut := min(total-width, max(t.layout.widths[c.Name]-limit.Narrow, 0))
			t.layout.widths[c.Name] -= cut
			total -= cut
		}
	}
	for total > width {
		drop := -1
		for i, c := range columns {
			if keep[i] && c.Drop > 0 && !t.sorts(c) && (drop < 0 || c.Drop >= columns[drop].Drop) {
				drop = i
			}
		}
		if drop < 0 {
			break
		}
		keep[drop] = false
		total -= t.needs(drop, columns) + gutter
	}
	t.widen(width-total, columns, keep)
	if last := len(columns) - 1; last >= 0 { // its text has spare width; narrowing that frees no cells
		t.layout.widths[columns[last].Name] = t.needs(last, columns)
	}
	t.narrow(total-width, columns, keep)
	return keep
}

// sorts reports whether the rows are sorted by the column.
func (t *Table[T]) sorts(c query.Column[T]) bool {
	by, _, ok := t.order.First()
	return ok && by == c.Name
}

// widen adds the wide columns that fit, the most important first.
func (t *Table[T]) widen(room int, columns []query.Column[T], keep []bool) {
	for {
		add := -1
		for i, c := range columns {
			if !keep[i] && c.Wide && t.needs(i, columns)+gutter <= room && (add < 0 || c.Drop < columns[add].Drop) {
				add = i
			}
		}
		if add < 0 {
			return
		}
		keep[add] = true
		room -= t.needs(add, columns) + gutter
	}
}

// grow shares the width that is left when the last column shows its texts in full.
func (t *Table[T]) grow(width int, columns []query.Column[T], keep []bool) {
	room := width - margin + gutter
	for i, c := range columns {
		if keep[i] {
			room -= t.layout.widths[c.Name] + gutter
		}
	}
	if n := len(columns); n > 0 && keep[n-1] {
		last := columns[n-1].Name
		room -= max(t.layout.grown[last]-t.layout.widths[last], 0)
	}
	growing := slices.DeleteFunc(slices.Clone(t.o.Grow), func(g Growth) bool {
		i := slices.IndexFunc(columns, func(c query.Column[T]) bool { return c.Name == g.Column })
		return i < 0 || !keep[i]
	})
	for before := room + 1; room > 0 && room < before; {
		before = room
		for _, g := range growing {
			if room > 0 && t.layout.widths[g.Column] < g.Most {
				t.layout.widths[g.Column]++
				room--
			}
		}
	}
}

// narrow takes cells from the kept columns, the widest first.
func (t *Table[T]) narrow(over int, columns []query.Column[T], keep []bool) {
	for ; over > 0; over-- {
		wide := -1
		for i, c := range columns {
			if keep[i] && t.layout.widths[c.Name] > max(c.Least, draw.Width(c.Header)) &&
				(wide < 0 || t.layout.widths[c.Name] >= t.layout.widths[columns[wide].Name]) {
				wide = i
			}
		}
		if wide < 0 {
			return
		}
		t.layout.widths[columns[wide].Name]--
	}
}

func (t *Table[T]) header(s draw.Style, width int, columns []query.Column[T]) string {
	l := draw.NewLine(s, width).Gap(margin)
	by, down, _ := t.order.First()
	for i, c := range columns {
		at := t.layout.columns[i]
		l.To(at.x)
		if c.Name == by {
			arrow := s.Pick("▲", "^")
			if down {
				arrow = s.Pick("▼", "v")
			}
			l.Add(draw.HeaderSorted, s.Fit(c.Header+arrow, min(max(draw.Width(c.Header)+1, at.width), max(at.width, 0)), c.Right))
			continue
		}
		l.Add(draw.Header, s.Fit(c.Header, at.width, c.Right))
	}
	return l.String()
}

func (t *Table[T]) line(s draw.Style, width int, row T, columns []query.Column[T], cells []string, selected bool) string {
	rowRole, uniform := draw.Text, false
	if t.o.Row != nil {
		rowRole, uniform = t.o.Row(row)
	}
	marked := t.marks[t.o.ID(row)]
	cursor := draw.Cursor
	switch {
	case selected && s.Idle && !t.o.Leads: // of a pane without focus: only the sign
		cursor = draw.Border
	case selected:
		s = s.Selected()
	}
	l := draw.NewLine(s, width)
	if selected {
		l.Add(cursor, s.Pick("▸", ">"))
	} else {
		l.Gap(1)
	}
	if marked {
		l.Add(draw.Marked, s.Pick("●", "*"))
	}
	for i, c := range columns {
		at := t.layout.columns[i]
		l.To(at.x)
		if _, drawn := t.o.Drawn[c.Name]; drawn && t.o.Draw != nil {
			l.Drawn(t.o.Draw(s, row, c.Name, at.width), at.width)
			continue
		}
		role := rowRole
		if !uniform && t.o.Role != nil {
			role = t.o.Role(row, c.Name)
		}
		t.cell(l, role, s.Fit(cells[i], at.width, c.Right))
	}
	return l.String()
}

// cell writes a text with the first match of a filter word highlighted.
func (t *Table[T]) cell(l *draw.Line, role draw.Role, text string) {
	for _, w := range t.words {
		if from, to, ok := findFold(text, w); ok {
			l.Add(role, text[:from]).Add(draw.Match, text[from:to]).Add(role, text[to:])
			return
		}
	}
	l.Add(role, text)
}

// findFold finds a lower-case word in a text, ignoring case as filters do.
func findFold(text, lower string) (from, to int, ok bool) {
	for i := range text {
		if n, ok := beginsFold(text[i:], lower); ok {
			return i, i + n, true
		}
	}
	return 0, 0, false
}

// beginsFold returns the length in bytes of the word if the text begins with it.
func beginsFold(text, lower string) (n int, ok bool) {
	for _, want := range lower {
		r, size := utf8.DecodeRuneInString(text[n:])
		if size == 0 || unicode.ToLower(r) != want {
			return 0, false
		}
		n += size
	}
	return n, true
}
