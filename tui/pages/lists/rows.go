package lists

import (
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// most is how many rows a table holds.
const most = 5000

// rows is a table with many rows.
type rows[T any] struct {
	Table *components.Table[T]

	page  pages.Page
	stamp stamp // of the last rows gathered
	begun time.Time
	last  *components.Picker[T] // nil if nothing was gathered yet
	busy  bool
	above int // lines above the table, as last drawn
}

// stamp identifies a state of the data from which rows are made.
type stamp struct{ View, Other uint64 }

// gathered carries the picked rows, with what else add returned.
type gathered[T any] struct {
	picker *components.Picker[T]
	stamp  stamp
	also   any
}

// newRows makes the table of a page.
func newRows[T any](page pages.Page, o components.TableOptions[T], filter string) *rows[T] {
	r := &rows[T]{Table: components.NewTable(o), page: page}
	_ = r.Table.SetFilter(filter) // by the program; an invalid one is ignored
	return r
}

// pace returns the shortest time between gatherings while the user is not waiting for one.
func (r *rows[T]) pace() time.Duration {
	switch {
	case r.last == nil:
		return 0
	case r.last.All() > 4*most:
		return 10 * time.Second
	}
	return time.Second
}

// Gather returns a command that picks from all rows, if the data or the user's selection has
// changed, else nil. add adds all rows; what it returns is delivered with the picked rows.
func (r *rows[T]) Gather(c pages.Context, stamp stamp, add func(*components.Picker[T]) any) tea.Cmd {
	wanted := r.last == nil || !r.Table.Picked(r.last)
	if r.busy || !wanted && (stamp == r.stamp || c.Clock.Sub(r.begun) < r.pace()) {
		return nil
	}
	r.busy, r.begun = true, c.Clock
	picker, page := r.Table.Picker(most), r.page
	return func() tea.Msg {
		also := add(picker)
		picker.Cut()
		return pages.Gathered{To: page, Rows: gathered[T]{picker, stamp, also}}
	}
}

// Take puts gathered rows into the table.
func (r *rows[T]) Take(msg pages.Gathered, now time.Time) (also any, ok bool) {
	g, ok := msg.Rows.(gathered[T])
	if !ok {
		return nil, false
	}
	r.busy, r.stamp, r.last = false, g.stamp, g.picker
	r.Table.SetPicked(g.picker, now)
	return g.also, true
}

// partOf counts a part: "3 of 30 nodes".
func partOf(n, all int, many string) string {
	return strconv.Itoa(n) + " of " + strconv.Itoa(all) + " " + many
}

// Lines draws the table below a summary line and one line for each note.
func (r *rows[T]) Lines(c pages.Context, sum []draw.Span, notes ...string) []string {
	s := c.Style()
	l := draw.NewLine(s, c.Width).Gap(1)
	if r.last == nil {
		sum = []draw.Span{{Role: draw.Faint, Text: "Reading ..."}}
	}
	for _, part := range sum {
		l.Add(part.Role, part.Text).Gap(2)
	}
	lines := []string{l.String()}
	shown, _ := r.Table.Found()
	if held := len(r.Table.Rows()); held < shown {
		notes = append(notes, "the first "+show.Count(held)+" of "+show.Count(shown)+" rows: a filter or another order shows others")
	}
	for _, note := range notes {
		lines = append(lines, draw.NewLine(s, c.Width).Gap(1).Add(draw.Warn, s.Clip(s.Pick("⚠ ", "W ")+note, max(c.Width-1, 0))).String())
	}
	r.above = min(len(lines), max(c.Height-3, 0))
	lines = append(lines[:r.above], pages.Table(c, s, r.Table, c.Width, c.Height-r.above)...)
	return draw.Exactly(lines, c.Width, c.Height)
}

// Mouse passes mouse events to the table. It reports whether to open a row.
func (r *rows[T]) Mouse(c pages.Context, m pages.Mouse) (open bool) {
	return components.Point(r.Table, m, r.above, c.Clock)
}

// Focus requests the addresses of all nodes: first of those in visible rows, then of some
// unread nodes.
func (r *rows[T]) Focus(c pages.Context, node func(T) string) watch.Focus {
	f := watch.Focus{Maps: true}
	seen := map[string]bool{"": true}
	for _, row := range r.Table.Visible() {
		if name := node(row); !seen[name] {
			seen[name] = true
			f.Visible = append(f.Visible, name)
		}
	}
	for _, name := range c.View.UnreadFirst(pages.UnreadAtOnce) {
		if !seen[name] {
			f.Visible = append(f.Visible, name)
		}
	}
	return f
}
