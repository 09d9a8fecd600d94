package components

import (
	"slices"
	"strings"
	"time"

	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// Limits on sorting, so that rows do not jump while the user moves.
const (
	sortEvery       = 2 * time.Second
	quietBeforeSort = 2 * time.Second
)

// TableOptions configures a table. Columns and ID are required.
type TableOptions[T any] struct {
	Columns []query.Column[T]
	ID      func(T) string                     // identity of a row
	Label   func(T, string) (string, bool)     // for filters label:key=value
	Fault   func(T) bool                       // rows shown in faults-only mode
	Role    func(T, string) draw.Role          // of a cell, by column name
	Row     func(T) (role draw.Role, all bool) // all: every cell of the row has the role
	Sort    []SortKey
	Order   string // the initial order

	// Show, if not nil, overrides how a cell is written. Filters and sorting still use
	// the column's text.
	Show func(row T, column string) (text string, ok bool)

	// Draw draws a cell that is not text: painted, exactly width cells wide. Drawn gives
	// the width of such columns; all other columns are text.
	Draw  func(s draw.Style, row T, column string, width int) string
	Drawn map[string]int

	// Grow are drawn columns that share the width that the others leave.
	Grow []Growth

	// From is the width of the table from which a wide column is shown by itself.
	From map[string]int

	// Sparse are columns that are left out while no row has a value, or only this one.
	Sparse map[string]string

	// Limits are for columns whose text comes from a node and may be long.
	Limits map[string]Limit

	Empty string // the text of an empty table
	Rows  string // what the rows are: "nodes"

	// Leads keeps the cursor visible without focus: other panes show what is under it.
	Leads bool
}

// Growth is the greatest width of a drawn column.
type Growth struct {
	Column string
	Most   int
}

// Limit limits the width of a column.
type Limit struct {
	Most   int // the greatest width
	Narrow int // the column is cut to this before others are dropped
}

// Table shows rows through a window and formats only the visible ones. The cursor stays on
// its row while values change. A new order or filter moves it to the first row, where it
// stays until the user moves it. A Table belongs to one goroutine.
type Table[T any] struct {
	o     TableOptions[T]
	all   []T
	rows  []T // those that match, in order
	order query.Order[T]
	find  *query.Filter[T]
	past  *query.Filter[T] // the last non-empty one with matches, for Next
	text  string
	words []string // of the filter

	faults, wide bool
	cursor, top  int
	at           string // identity under the cursor; "" = the first row, whichever it is
	marks        map[string]bool
	anchor       string

	asked  uint64 // incremented when the filter, the order or faults change
	picked uint64 // value of asked when a Picker's rows were last taken at once
	beyond int    // matching rows that the table does not hold; see Picker
	total  int    // all rows that a Picker has seen; 0 without one

	sorted, moved time.Time
	waiting       bool // all has changed, but rows is in the old order

	bare   map[string]bool // the sparse columns without a value
	page   int             // rows of the window as last drawn; 0 = not drawn yet
	layout layout
	byID   map[string]int // index in ids, for refresh only
	ids    []string       // of all, as refresh saw it last
}

// NewTable makes an empty table.
func NewTable[T any](o TableOptions[T]) *Table[T] {
	t := &Table[T]{o: o, marks: map[string]bool{}}
	_ = t.SetOrder(o.Order) // the program's own orders are valid
	return t
}

// SetRows replaces the rows. It sorts and filters at most every two seconds and not while
// the user moves; in between, rows stay in place.
func (t *Table[T]) SetRows(rows []T, now time.Time) {
	t.all = rows
	if t.sorted.IsZero() || t.may(now) {
		t.apply(now)
		return
	}
	t.refresh()
}

// Renew replaces the rows, and sorts and filters at once: the user waited for them.
func (t *Table[T]) Renew(rows []T, now time.Time) {
	t.all = rows
	t.apply(now)
}

// Settle applies a pending sort and filter once it may.
func (t *Table[T]) Settle(now time.Time) {
	if t.waiting && t.may(now) {
		t.apply(now)
	}
}

func (t *Table[T]) may(now time.Time) bool {
	return now.Sub(t.sorted) >= sortEvery && now.Sub(t.moved) >= quietBeforeSort
}

// apply filters and sorts all rows.
func (t *Table[T]) apply(now time.Time) {
	t.sorted, t.waiting = now, false
	t.rows = t.rows[:0]
	for _, r := range t.all {
		if t.faults && t.o.Fault != nil && !t.o.Fault(r) {
			continue
		}
		if t.find.Match(r) {
			t.rows = append(t.rows, r)
		}
	}
	t.order.Sort(t.rows, t.o.ID)
	t.strip()
	t.follow()
}

// strip finds out which sparse columns have no value.
func (t *Table[T]) strip() {
	if len(t.o.Sparse) == 0 || len(t.rows) == 0 {
		return
	}
	t.bare = map[string]bool{}
	for _, c := range t.o.Columns {
		none, sparse := t.o.Sparse[c.Name]
		t.bare[c.Name] = sparse && !slices.ContainsFunc(t.rows, func(r T) bool {
			text := t.shownText(r, c)
			return text != none && !query.IsUnknown(text)
		})
	}
}

// refresh updates the rows shown without moving them. It removes rows that are gone and
// appends new ones.
func (t *Table[T]) refresh() {
	t.waiting = true
	t.index()
	shown := make([]bool, len(t.all))
	kept := t.rows[:0]
	for _, r := range t.rows {
		if i, ok := t.byID[t.o.ID(r)]; ok && !shown[i] {
			kept = append(kept, t.all[i])
			shown[i] = true
		}
	}
	for i, r := range t.all {
		if !shown[i] && !shown[t.byID[t.ids[i]]] && t.find.Match(r) && (!t.faults || t.o.Fault == nil || t.o.Fault(r)) {
			kept = append(kept, r)
		}
	}
	t.rows = kept
	t.follow()
}

// index finds out where in all each row is. Most changes are of values: then it is where it was.
func (t *Table[T]) index() {
	if len(t.ids) == len(t.all) {
		i := 0
		for i < len(t.ids) && t.ids[i] == t.o.ID(t.all[i]) {
			i++
		}
		if i == len(t.ids) {
			return
		}
	}
	t.ids, t.byID = t.ids[:0], make(map[string]int, len(t.all))
	for i, r := range t.all {
		id := t.o.ID(r)
		t.ids = append(t.ids, id)
		t.byID[id] = i
	}
}

// follow puts the cursor back on its row; if that is gone, it stays in place.
func (t *Table[T]) follow() {
	if t.at != "" && !(t.cursor < len(t.rows) && t.o.ID(t.rows[t.cursor]) == t.at) {
		for i, r := range t.rows {
			if t.o.ID(r) == t.at {
				if t.page > 0 {
					t.top += i - t.cursor
				}
				t.cursor = i
				break
			}
		}
	}
	t.clamp()
}

func (t *Table[T]) clamp() {
	t.cursor = max(min(t.cursor, len(t.rows)-1), 0)
	if t.page == 0 {
		return
	}
	if t.cursor < t.top {
		t.top = t.cursor
	}
	if t.cursor >= t.top+t.page {
		t.top = t.cursor - t.page + 1
	}
	t.top = max(min(t.top, len(t.rows)-t.page), 0)
}

// Row returns the row under the cursor.
func (t *Table[T]) Row() (T, bool) {
	if t.cursor < len(t.rows) {
		return t.rows[t.cursor], true
	}
	var none T
	return none, false
}

// Visible returns the rows in the window.
func (t *Table[T]) Visible() []T {
	return t.rows[t.top:min(t.top+t.page, len(t.rows))]
}

// All returns all rows, whatever the filter. The caller must not keep them.
func (t *Table[T]) All() []T { return t.all }

// Rows returns the matching rows, in order. The caller must not keep them.
func (t *Table[T]) Rows() []T { return t.rows }

// Select puts the cursor on a row by its identity.
func (t *Table[T]) Select(id string) bool {
	for i, r := range t.rows {
		if t.o.ID(r) == id {
			t.cursor, t.at = i, id
			t.clamp()
			return true
		}
	}
	return false
}

// Do carries out moves and marks.
func (t *Table[T]) Do(action string, now time.Time) bool {
	switch action {
	case keymap.Up:
		t.move(t.cursor-1, now)
	case keymap.Down:
		t.move(t.cursor+1, now)
	case keymap.PageUp:
		t.move(t.cursor-t.page, now)
	case keymap.PageDown:
		t.move(t.cursor+t.page, now)
	case keymap.HalfUp:
		t.move(t.cursor-max(t.page/2, 1), now)
	case keymap.HalfDown:
		t.move(t.cursor+max(t.page/2, 1), now)
	case keymap.First:
		t.move(0, now)
	case keymap.Last:
		t.move(len(t.rows)-1, now)
	case keymap.Mark:
		t.mark(now)
	case keymap.Range:
		t.markRange(now)
	case keymap.SortLeft:
		t.sortBeside(-1)
	case keymap.SortRight:
		t.sortBeside(+1)
	case keymap.Reverse:
		if by, _, ok := t.order.First(); ok {
			t.SortBy(by)
		}
	default:
		return false
	}
	return true
}

func (t *Table[T]) move(to int, now time.Time) {
	t.moved = now
	t.cursor = to
	t.clamp()
	if t.cursor < len(t.rows) {
		t.at = t.o.ID(t.rows[t.cursor])
	}
}

func (t *Table[T]) mark(now time.Time) {
	r, ok := t.Row()
	if !ok {
		return
	}
	id := t.o.ID(r)
	if t.marks[id] {
		delete(t.marks, id)
	} else {
		t.marks[id] = true
	}
	t.anchor = id
	t.move(t.cursor+1, now)
}

func (t *Table[T]) markRange(now time.Time) {
	from := t.cursor
	for i, r := range t.rows {
		if t.o.ID(r) == t.anchor {
			from = i
		}
	}
	for i := min(from, t.cursor); i <= max(from, t.cursor) && i < len(t.rows); i++ {
		t.marks[t.o.ID(t.rows[i])] = true
	}
	t.moved = now
}

// Marked counts the marked rows.
func (t *Table[T]) Marked() int { return len(t.marks) }

// Identities returns the identities of the marked rows, in the order shown, or of the row
// under the cursor.
func (t *Table[T]) Identities() []string {
	var out []string
	for _, r := range t.chosen() {
		out = append(out, t.o.ID(r))
	}
	if out == nil {
		if r, ok := t.Row(); ok {
			out = []string{t.o.ID(r)}
		}
	}
	return out
}

// chosen returns the marked rows that are shown.
func (t *Table[T]) chosen() []T {
	if len(t.marks) == 0 {
		return nil
	}
	var out []T
	for _, r := range t.rows {
		if t.marks[t.o.ID(r)] {
			out = append(out, r)
		}
	}
	return out
}

// Found returns how many rows match the filter, and how many there are.
func (t *Table[T]) Found() (shown, all int) {
	return len(t.rows) + t.beyond, max(len(t.all), t.total)
}

// Window returns the first and the last row on the screen, counted from 1; 0, 0 if none.
func (t *Table[T]) Window() (first, last int) {
	if len(t.rows) == 0 {
		return 0, 0
	}
	return t.top + 1, min(t.top+t.page, len(t.rows))
}

// Frozen reports whether sorting waits for the user to stop moving.
func (t *Table[T]) Frozen(now time.Time) bool {
	return t.waiting && now.Sub(t.moved) < quietBeforeSort
}

// toTop puts the cursor on the first row, whichever row that becomes.
func (t *Table[T]) toTop() { t.cursor, t.top, t.at = 0, 0, "" }

// Faults reports whether only rows with a fault are shown.
func (t *Table[T]) Faults() bool { return t.faults }

// SetFaults shows only rows with a fault.
func (t *Table[T]) SetFaults(on bool) {
	if t.faults != on {
		t.faults = on
		if on {
			t.toTop()
		}
		t.again()
	}
}

// SetWide shows the wide columns too.
func (t *Table[T]) SetWide(on bool) {
	t.wide = on
}

// again applies a new filter, order or faults setting.
func (t *Table[T]) again() {
	t.asked++
	t.beyond = 0
	t.layout.forget()
	t.apply(t.sorted)
}

// Click selects a row or sorts by a header.
func (t *Table[T]) Click(x, y int, now time.Time) bool {
	if y == 0 {
		if c := t.layout.columnAt(x); c != "" {
			t.SortBy(c)
		}
		return false
	}
	i := t.top + y - 1
	if y < 0 || i >= len(t.rows) || y > t.page {
		return false
	}
	t.move(i, now)
	return true
}

// Wheel scrolls the window. The cursor moves only to stay inside it.
func (t *Table[T]) Wheel(rows int, now time.Time) {
	t.top = max(min(t.top+rows, len(t.rows)-t.page), 0)
	t.move(min(max(t.cursor, t.top), t.top+t.page-1), now)
}

// Cells returns the marked rows, or else all rows shown, as text.
func (t *Table[T]) Cells() (header []string, rows [][]string) {
	columns := t.wanted()
	for _, c := range columns {
		header = append(header, strings.TrimSpace(c.Header))
	}
	from := t.chosen()
	if from == nil {
		from = t.rows
	}
	for _, r := range from {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = show.Safe(c.Text(r))
		}
		rows = append(rows, cells)
	}
	return header, rows
}

// shownColumns returns the columns that are shown if there is room.
func (t *Table[T]) shownColumns() []query.Column[T] {
	return slices.DeleteFunc(t.wanted(), func(c query.Column[T]) bool { return t.bare[c.Name] && !t.wide && !t.sorts(c) })
}

// wanted returns the columns of the narrow or the wide table, whatever the rows have.
func (t *Table[T]) wanted() []query.Column[T] {
	var out []query.Column[T]
	for _, c := range t.o.Columns {
		from := t.o.From[c.Name]
		if !c.Named && (t.wide || !c.Wide || from > 0 && t.layout.width >= from) || t.sorts(c) {
			out = append(out, c)
		}
	}
	return out
}
