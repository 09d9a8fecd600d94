package components

import (
	"cmp"
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
	fitted := t.fit(width, columns)
	t.layout.columns = t.layout.columns[:0]
	x := margin
	out := columns[:0]
	for j, c := range columns {
		if !fitted.Shown[j] {
			continue
		}
		w := min(fitted.Widths[j], max(width-x, 0))
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

// fit lays out the columns. Wide columns get only the room that the columns of the narrow table leave;
// the sort column always stays.
func (t *Table[T]) fit(width int, columns []query.Column[T]) *draw.Layout {
	all := make([]draw.Column, len(columns))
	for i, c := range columns {
		all[i] = t.room(c, i == len(columns)-1)
		if all[i].Drop > 0 {
			all[i].Drop = all[i].Drop<<8 + i // of two with the same priority, the right one is dropped first
		}
	}
	l := draw.NewLayout(all, gutter, width-margin)
	l.Fit()
	l.Widen()
	l.Squeeze()
	l.Grow()
	return l
}

// room returns how much room a column needs. The last one, if it is text, takes what is left, and gives up
// the end of its text before other columns are dropped.
func (t *Table[T]) room(c query.Column[T], last bool) draw.Column {
	out := draw.Column{Want: t.layout.grown[c.Name], Floor: max(c.Least, draw.Width(c.Header))}
	if !t.sorts(c) {
		out.Drop, out.Extra = c.Drop, c.Wide
	}
	for _, g := range t.o.Grow {
		if g.Column == c.Name {
			out.Most = g.Most
		}
	}
	narrow := t.o.Limits[c.Name].Narrow
	if last && !c.Right {
		out.Text, out.Least = true, max(c.Least, lastLeast, draw.Width(c.Header)+1, narrow)
	} else {
		out.Narrow = narrow
	}
	return out
}

// sorts reports whether the rows are sorted by the column.
func (t *Table[T]) sorts(c query.Column[T]) bool {
	by, _, ok := t.order.First()
	return ok && by == c.Name
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
