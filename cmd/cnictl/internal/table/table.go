// Package table lays out rows as kubectl does: upper-case headers, two-space
// gutters, no borders. Every cell is made safe to print. It is pure.
package table

import (
	"regexp"
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/fleet/show"
)

const gutter = "  "

// Column is one column.
type Column struct {
	Name  string
	Right bool   // numbers
	Free  bool   // free text: what is cut when a terminal is too narrow
	Min   int    // of free text: columns are dropped rather than cut it below; 0 = 12
	Drop  int    // > 0: may be left out on a narrow terminal, the highest first
	Ends  bool   // texts that differ at their ends: cut in the middle
	Empty bool   // left out of a terminal where no row has anything in it
	Unit  string // of Cell.Plain in CSV
	Cut   int    // > 0: is narrowed to this before columns are left out: for long names that differ at their beginning
}

// Cell is one cell. Class paints it. Raw text is trusted: it was made here, has its
// own colours, and is not escaped.
type Cell struct {
	Text  string
	Class paint.Class
	Raw   bool
	Plain string // the number as CSV has it, of columns with a Unit
}

// width is the number of cells of a terminal that it takes.
func (c Cell) width() int {
	if c.Raw {
		return paint.Width(c.Text)
	}
	return show.Width(c.Text)
}

// Options for rendering.
type Options struct {
	NoHeaders bool
	Width     int  // of the terminal; 0: never cut or drop
	Keep      bool // no column is left out: they were asked for by name
	Palette   paint.Palette
	MinWidths []int // of columns, for rows that follow others
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

// Widths are the column widths of the rendered table, for Options.MinWidths of rows
// that follow.
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

// leastOf is Column.Min with its default.
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

// awsID is an id of AWS: useless in part.
var awsID = regexp.MustCompile(`^(eni|subnet|i|vpc|sg)-[0-9a-f]{8,17}$`)

// ids marks the columns that hold ids of AWS.
func (t Table) ids() []bool {
	ids := make([]bool, len(t.Columns))
	for i := range t.Columns {
		ids[i] = slices.ContainsFunc(t.Rows, func(row []Cell) bool { return awsID.MatchString(row[i].Text) })
	}
	return ids
}

// lastID is the last of several shown columns of ids; -1: there is one at most.
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

// fit decides which columns a terminal shows and narrows the free-text column to
// what is left. Ids are shown in full or not at all. It changes widths.
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
			// The widest first: a few cells of free text are worth less than a shortened
			// name.
			widths[text] = max(leastText, widths[text]-(over+1)/2)
		case free >= 0 && widths[free] > 1:
			// By half: with two such columns both shrink, the wider one first.
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

// Dropped names the columns that do not fit the terminal.
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

// clip cuts a text at its end, or in its middle.
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
