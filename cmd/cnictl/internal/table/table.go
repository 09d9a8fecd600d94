// Package table lays out rows as kubectl does: upper-case headers, two-space gutters, no
// borders. It makes every cell safe to print. It is pure.
package table

import (
	"regexp"
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/paint"
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
	shown := make([]bool, len(t.Columns))
	for i := range shown {
		shown[i] = true
	}
	return opts.Width > 0 && total(t.Widths(opts), shown) > opts.Width
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
var awsID = regexp.MustCompile(`^(eni|subnet|i|vpc|sg)-[0-9a-f]{8,17}$`)

// ids marks the columns that hold AWS ids.
func (t Table) ids() []bool {
	ids := make([]bool, len(t.Columns))
	for i := range t.Columns {
		ids[i] = slices.ContainsFunc(t.Rows, func(row []Cell) bool { return awsID.MatchString(row[i].Text) })
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
	shown := make([]bool, len(t.Columns))
	for i, c := range t.Columns {
		shown[i] = opts.Width <= 0 || opts.Keep || !c.Empty || t.filled(i)
	}
	width := opts.Width
	if width <= 0 {
		return shown
	}
	ids := t.ids()
	if opts.Keep {
		clear(ids)
	}
	for {
		over := total(widths, shown) - width
		if over <= 0 {
			return shown
		}
		free, drop, text := -1, -1, -1
		for i, c := range t.Columns {
			if !shown[i] {
				continue
			}
			if c.Free && !ids[i] && (free < 0 || widths[i] > widths[free]) {
				free = i
			}
			if !c.Right && !ids[i] && !t.raw(i) && (text < 0 || widths[i] > widths[text]) {
				text = i
			}
			if c.Cut > 0 && widths[i] > c.Cut {
				widths[i] = max(c.Cut, widths[i]-over)
				over = total(widths, shown) - width
			}
			if c.Drop > 0 && !opts.Keep && (drop < 0 || c.Drop > t.Columns[drop].Drop) {
				drop = i
			}
		}
		switch {
		case over <= 0:
		case free >= 0 && widths[free]-over >= leastOf(t.Columns[free]):
			widths[free] -= over
		case drop >= 0:
			shown[drop] = false
		case lastID(ids, shown) >= 0:
			shown[lastID(ids, shown)] = false
		case opts.Keep && text >= 0 && text != free && widths[text] > leastText && (free < 0 || widths[text] > widths[free]):
			// The widest first: losing a few cells of free text is better than cutting a
			// name.
			widths[text] = max(leastText, widths[text]-(over+1)/2)
		case free >= 0 && widths[free] > 1:
			// Halve the excess: if two such columns exist both shrink, the wider one first.
			widths[free] = max(1, widths[free]-(over+1)/2)
		case text >= 0 && widths[text] > leastText:
			widths[text] = max(leastText, widths[text]-over)
		default:
			return shown
		}
	}
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

func total(widths []int, shown []bool) int {
	sum, n := 0, 0
	for i, w := range widths {
		if shown[i] {
			sum += w
			n++
		}
	}
	return sum + len(gutter)*max(0, n-1)
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
