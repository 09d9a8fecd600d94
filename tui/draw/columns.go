package draw

// Column says how much room a column of a table needs, and what it gives up in a narrow one.
type Column struct {
	Want int // its width, if there is room for all columns

	// A narrow table takes cells from its columns in this order: those with a Cut, to that; the widest
	// Text, to Least, if that is enough; those with Narrow, to that. Then it drops the column with the
	// highest Drop, and tries again.
	Cut    int // 0: not cut
	Text   bool
	Least  int
	Narrow int // 0: not narrowed
	Drop   int // 0: never dropped; each column needs one of its own

	Floor int  // what Squeeze leaves
	Extra bool // shown only if Widen finds room, the lowest Drop first
	Most  int  // how wide Grow makes it; 0: not wider
}

// Layout places the columns of a table in a row. Widths and Shown are by column.
type Layout struct {
	Widths []int
	Shown  []bool

	columns      []Column
	gutter, room int
}

// NewLayout begins a layout of columns, some cells apart, in as many cells as there is room.
func NewLayout(columns []Column, gutter, room int) *Layout {
	l := &Layout{Widths: make([]int, len(columns)), Shown: make([]bool, len(columns)), columns: columns, gutter: gutter, room: room}
	for i, c := range columns {
		l.Widths[i], l.Shown[i] = c.Want, !c.Extra
	}
	return l
}

// Over returns how many cells are missing; less than 0 if there is room left.
func (l *Layout) Over() int {
	sum := -l.gutter
	for i, w := range l.Widths {
		if l.Shown[i] {
			sum += w + l.gutter
		}
	}
	return max(sum, 0) - l.room
}

// Fit narrows and drops columns until they fit, or none is left that may be narrowed or dropped.
func (l *Layout) Fit() {
	for {
		over := l.cut(l.Over())
		if over <= 0 {
			return
		}
		text := l.Widest(func(i int) bool { return l.columns[i].Text })
		slack := 0
		if text >= 0 {
			slack = l.slack(text)
		}
		if over = l.narrow(over, slack); over <= slack {
			if over > 0 {
				l.Widths[text] -= over
			}
			return
		}
		drop := l.dropped()
		if drop < 0 {
			return
		}
		l.Shown[drop] = false
	}
}

// slack returns how many cells a text can give up.
func (l *Layout) slack(text int) int { return max(l.Widths[text]-l.columns[text].Least, 0) }

// cut narrows the columns with a Cut and returns how many cells are still missing.
func (l *Layout) cut(over int) int {
	for i, c := range l.columns {
		if over > 0 && l.Shown[i] && c.Cut > 0 && l.Widths[i] > c.Cut {
			by := min(over, l.Widths[i]-c.Cut)
			l.Widths[i] -= by
			over -= by
		}
	}
	return over
}

// narrow narrows the columns with a Narrow until the slack is enough, and returns how many cells are
// still missing.
func (l *Layout) narrow(over, slack int) int {
	for i, c := range l.columns {
		if l.Shown[i] && c.Narrow > 0 {
			by := max(min(over-slack, l.Widths[i]-c.Narrow), 0)
			l.Widths[i] -= by
			over -= by
		}
	}
	return over
}

// Widest returns the widest of some of the shown columns, -1 if there is none.
func (l *Layout) Widest(of func(i int) bool) int {
	out := -1
	for i := range l.columns {
		if l.Shown[i] && of(i) && (out < 0 || l.Widths[i] > l.Widths[out]) {
			out = i
		}
	}
	return out
}

// dropped returns the column to drop next, -1 if there is none.
func (l *Layout) dropped() int {
	out := -1
	for i, c := range l.columns {
		if l.Shown[i] && c.Drop > 0 && (out < 0 || c.Drop > l.columns[out].Drop) {
			out = i
		}
	}
	return out
}

// Widen shows the extra columns for which texts leave room.
func (l *Layout) Widen() {
	for i, c := range l.columns {
		if c.Text {
			l.Widths[i] -= l.slack(i)
		}
	}
	for room := -l.Over(); ; {
		add := -1
		for i, c := range l.columns {
			if c.Extra && !l.Shown[i] && l.Widths[i]+l.gutter <= room && (add < 0 || c.Drop < l.columns[add].Drop) {
				add = i
			}
		}
		if add < 0 {
			break
		}
		l.Shown[add] = true
		room -= l.Widths[add] + l.gutter
	}
	for i, c := range l.columns {
		if c.Text && l.Shown[i] {
			l.Widths[i] += max(min(c.Want-l.Widths[i], -l.Over()), 0)
		}
	}
}

// Grow shares the room that is left among the columns that may grow.
func (l *Layout) Grow() {
	room := -l.Over()
	for before := room + 1; room > 0 && room < before; {
		before = room
		for i, c := range l.columns {
			if room > 0 && l.Shown[i] && l.Widths[i] < c.Most {
				l.Widths[i]++
				room--
			}
		}
	}
}

// Squeeze takes cells from the widest columns, down to their floors, when nothing else can be given up.
func (l *Layout) Squeeze() {
	for over := l.Over(); over > 0; over-- {
		wide := -1
		for i, c := range l.columns {
			if l.Shown[i] && l.Widths[i] > c.Floor && (wide < 0 || l.Widths[i] >= l.Widths[wide]) {
				wide = i
			}
		}
		if wide < 0 {
			return
		}
		l.Widths[wide]--
	}
}
