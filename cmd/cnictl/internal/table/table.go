// Package table lays out rows as kubectl does: upper-case headers, two-space gutters, no
// borders. It makes every cell safe to print. It is pure.
package table

import (
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/lazy"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

const gutter = "  "

// Column is one column.
type Column struct {
	Name  string
	Right bool   // numbers: align right
	Free  bool   // free text: cut if the terminal is too narrow
	Min   int    // of free text: columns are dropped before it gets narrower; 0 = 12
	Drop  int    // > 0: may be dropped on a narrow terminal, the highest first
	Ends  bool   // texts that differ at their ends: cut in the middle
	Empty bool   // dropped on a terminal if no row has a value
	Unit  string // of Cell.Plain in CSV
	Cut   int    // > 0: narrowed to this before columns are dropped: long names that differ at the start
}

// Cell is one cell. Class colours it. Raw text is trusted and not escaped: it was made here
// and has its own colours.
type Cell struct {
	Text  string
	Class paint.Class
	Raw   bool
	Plain string // the number for CSV, in columns with a Unit
}

// width returns the number of terminal cells that it takes.
func (c Cell) width() int {
	if c.Raw {
		return paint.Width(c.Text)
	}
	return show.Width(c.Text)
}

// Options control rendering.
type Options struct {
	NoHeaders bool
	Width     int  // of the terminal; 0: never cut or drop
	Keep      bool // drop no columns: they were requested by name
	Palette   paint.Palette
	MinWidths []int // of columns, for rows printed after others
}

// Table is a set of rows; every row has a cell per column.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// Cells makes plain cells.
func Cells(texts ...string) []Cell {
	cells := make([]Cell, len(texts))
	for i, t := range texts {
		cells[i].Text = t
	}
	return cells
}

// Lines renders the table, a string per line.
func (t Table) Lines(opts Options) []string {
	rows := make([][]Cell, 0, len(t.Rows)+1)
	if !opts.NoHeaders {
		head := make([]Cell, len(t.Columns))
		for i, c := range t.Columns {
			head[i] = Cell{Text: c.Name, Class: paint.Head}
		}
		rows = append(rows, head)
	}
	for _, row := range t.Rows {
		safe := make([]Cell, len(row))
		for i, c := range row {
			if !c.Raw {
				c.Text = show.Safe(c.Text)
			}
			safe[i] = c
		}
		rows = append(rows, safe)
	}
	widths := t.widths(rows, opts)
	shown := t.fit(widths, opts)
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = t.line(row, widths, shown, opts.Palette)
	}
	return lines
}

// Widths returns the column widths of the rendered table, for the Options.MinWidths of later
// rows.
func (t Table) Widths(opts Options) []int {
	rows := make([][]Cell, 0, len(t.Rows))
	for _, row := range t.Rows {
		safe := make([]Cell, len(row))
		for i, c := range row {
			safe[i] = Cell{Text: show.Safe(c.Text), Raw: c.Raw}
		}
		rows = append(rows, safe)
	}
	return t.widths(rows, opts)
}

// Wider reports whether the full table is wider than Options.Width.
func (t Table) Wider(opts Options) bool {
	columns := make([]draw.Column, len(t.Columns))
	for i, w := range t.Widths(opts) {
		columns[i].Want = w
	}
	return opts.Width > 0 && draw.NewLayout(columns, len(gutter), opts.Width).Over() > 0
}

func (t Table) widths(rows [][]Cell, opts Options) []int {
	widths := make([]int, len(t.Columns))
	copy(widths, opts.MinWidths)
	for i, c := range t.Columns {
		if !opts.NoHeaders {
			widths[i] = max(widths[i], show.Width(c.Name))
		}
		for _, row := range rows {
			widths[i] = max(widths[i], row[i].width())
		}
	}
	return widths
}

// leastOf returns Column.Min or its default.
func leastOf(c Column) int {
	if c.Min == 0 {
		return 12
	}
	return c.Min
}

// leastText is the minimum width of any text, as a last resort.
const leastText = 8

// raw reports whether a column cannot be cut.
func (t Table) raw(column int) bool {
	return slices.ContainsFunc(t.Rows, func(row []Cell) bool { return row[column].Raw })
}

// awsID matches an AWS id, which is useless if cut.
var awsID = lazy.Regexp(`^(eni|subnet|i|vpc|sg)-[0-9a-f]{8,17}$`)

// ids marks the columns that hold AWS ids.
func (t Table) ids() []bool {
	ids := make([]bool, len(t.Columns))
	for i := range t.Columns {
		ids[i] = slices.ContainsFunc(t.Rows, func(row []Cell) bool { return awsID().MatchString(row[i].Text) })
	}
	return ids
}

// lastID returns the last shown column of ids; -1 if at most one is shown.
func lastID(ids, shown []bool) int {
	last, n := -1, 0
	for i := range ids {
		if ids[i] && shown[i] {
			last = i
			n++
		}
	}
	if n < 2 {
		return -1
	}
	return last
}

// fit decides which columns a terminal shows, and narrows the free-text column to the
// remaining width. Ids are shown in full or not at all. It modifies widths.
func (t Table) fit(widths []int, opts Options) []bool {
	ids := t.ids()
	if opts.Keep {
		clear(ids)
	}
	columns := make([]draw.Column, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = draw.Column{
			Want: widths[i], Cut: c.Cut, Text: c.Free && !ids[i], Least: leastOf(c), Extra: opts.Width > 0 && !opts.Keep && c.Empty && !t.filled(i),
		}
		if c.Drop > 0 && !opts.Keep {
			columns[i].Drop = (c.Drop+1)<<8 - i // of two with the same priority, the left one is dropped first
		}
	}
	l := draw.NewLayout(columns, len(gutter), opts.Width)
	if opts.Width <= 0 {
		return l.Shown
	}
	for l.Fit(); l.Over() > 0 && t.yield(l, ids, opts.Keep); l.Fit() {
	}
	copy(widths, l.Widths)
	return l.Shown
}

// yield gives up some room where columns that may be narrowed or dropped do not suffice. It returns false
// if nothing is left to give up.
func (t Table) yield(l *draw.Layout, ids []bool, keep bool) bool {
	over := l.Over()
	free := l.Widest(func(i int) bool { return t.Columns[i].Free && !ids[i] })
	text := l.Widest(func(i int) bool { return !t.Columns[i].Right && !ids[i] && !t.raw(i) })
	is := func(column, least int) bool { return column >= 0 && l.Widths[column] > least }
	switch id := lastID(ids, l.Shown); {
	case id >= 0:
		l.Shown[id] = false
	case keep && is(text, leastText) && text != free && (free < 0 || l.Widths[text] > l.Widths[free]):
		// The widest first: losing a few cells of free text is better than cutting a name.
		l.Widths[text] = max(leastText, l.Widths[text]-(over+1)/2)
	case is(free, 1):
		// Halve the excess: if two such columns exist both shrink, the wider one first.
		l.Widths[free] = max(1, l.Widths[free]-(over+1)/2)
	case is(text, leastText):
		l.Widths[text] = max(leastText, l.Widths[text]-over)
	default:
		return false
	}
	return true
}

// filled reports whether some row has a value in a column.
func (t Table) filled(column int) bool {
	return slices.ContainsFunc(t.Rows, func(row []Cell) bool { return row[column].Text != "" })
}

// Dropped names the columns that do not fit on the terminal.
func (t Table) Dropped(opts Options) []string {
	var names []string
	for i, shown := range t.fit(t.Widths(opts), opts) {
		if c := t.Columns[i]; !shown && (!c.Empty || t.filled(i)) {
			names = append(names, c.Name)
		}
	}
	return names
}

// clip cuts text at its end, or with ends in its middle.
func clip(text string, width int, ends bool) string {
	if ends {
		return show.ClipMiddle(text, width)
	}
	return show.Clip(text, width)
}

func (t Table) line(row []Cell, widths []int, shown []bool, p paint.Palette) string {
	var b strings.Builder
	pad, first := 0, true
	for i, c := range row {
		if !shown[i] {
			continue
		}
		if !first {
			pad += len(gutter)
		}
		first = false
		if !c.Raw {
			c.Text = clip(c.Text, widths[i], t.Columns[i].Ends)
		}
		cell, blank := c.Text, widths[i]-c.width()
		if t.Columns[i].Right {
			pad += blank
			blank = 0
		}
		if cell != "" {
			b.WriteString(strings.Repeat(" ", pad))
			pad = 0
		}
		b.WriteString(p.Paint(c.Class, cell))
		pad += blank
	}
	return b.String()
}
