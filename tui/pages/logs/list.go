package logs

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/components"
	"cnictl/tui/keymap"
	"cnictl/tui/query"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// newColumns returns the columns of lines and, for filters, those of cnictl events.
func (m *Model) newColumns() []query.Column[*line] {
	own := []query.Column[*line]{
		{Name: "time", Header: "TIME", Title: "when", Text: func(l *line) string { return l.At.UTC().Format(time.RFC3339) },
			Number: func(l *line) (float64, bool) { return float64(l.At.Unix()), !l.At.IsZero() }},
		{Name: "level", Header: "LEVEL", Title: "debug, info, warn, error, fatal", Text: func(l *line) string { return levelText(*l) }},
		{Name: "node", Header: "NODE", Title: "node that the line is from", Text: func(l *line) string { return l.Node }},
		{Name: "from", Header: "FROM",
			Title: "log, event (of the daemon), kubernetes (an event of the cluster), container (what the daemon's container wrote)",
			Text:  func(l *line) string { return string(l.From) },
			Also:  func(l *line) string { return l.item.From }},
		{Name: "kind", Header: "KIND", Title: "kind of event; - for other lines", Text: func(l *line) string { return show.OrUnknown(l.Kind) }},
		{Name: "pod", Header: "POD", Title: "namespace/name", Text: func(l *line) string { return show.OrUnknown(l.Pod) }},
		{Name: "eni", Header: "ENI", Title: "network interface", Text: func(l *line) string { return show.OrUnknown(l.ENI) }},
		{Name: "address", Header: "ADDRESS", Title: "address", Text: func(l *line) string { return show.OrUnknown(l.IP) }},
		{Name: "text", Header: "TEXT", Title: "the message", Text: func(l *line) string {
			if l.Rest == "" {
				return l.Text
			}
			return l.Text + " " + l.Rest
		}, Also: func(l *line) string { return l.item.Message }},
	}
	of := func(l *line) inventory.Event {
		r := inventory.Event{EventItem: l.item, Now: m.now}
		if r.What == "" { // a log line
			r.At, r.Node, r.Count, r.Warning = l.At, l.Node, 1, l.Level >= logline.Warn
		}
		return r
	}
	out := slices.Clone(own)
	for _, c := range query.Of(tables.Events(), of) {
		if _, ok := query.Meant(own, c.Name); !ok {
			c.Named = true
			out = append(out, c)
		}
	}
	return out
}

// list is the log as a list for the app: filter line, export, next match. Lines are always
// in order of time.
type list struct{ m *Model }

func (l list) Do(action string, _ time.Time) bool { return l.m.view.Do(action) }

func (l list) Filter() string { return l.m.text }

func (l list) Found() (shown, all int) { return l.m.view.Len(), len(l.m.all) }

func (l list) SetFilter(text string) error {
	f, err := query.Parse(text, query.Options[*line]{Columns: l.m.columns})
	if err != nil {
		return err
	}
	l.m.text, l.m.filter, l.m.stale = text, f, true
	l.m.show()
	return nil
}

func (l list) Order() string { return "" }

func (l list) SetOrder(string) error { return nil }

func (l list) SortMenu() []components.SortKey { return nil }

func (l list) SortBy(string) {}

func (l list) Faults() bool { return l.m.faults }

func (l list) Reset() {
	l.SetFaults(false)
	_ = l.SetFilter("") // always valid
}

func (l list) SetFaults(on bool) {
	if l.m.faults != on {
		l.m.faults, l.m.stale = on, true
		l.m.show()
	}
}

func (l list) SetWide(bool) {}

func (l list) Window() (first, last int) { return l.m.view.Window() }

func (l list) Frozen(time.Time) bool { return l.m.paused || !l.m.view.Following() }

func (l list) Next(step int, _ time.Time) bool {
	if step < 0 {
		return l.m.view.Do(keymap.Up)
	}
	return l.m.view.Do(keymap.Down)
}

func (l list) Cells() (header []string, rows [][]string) {
	columns := slices.DeleteFunc(slices.Clone(l.m.columns), func(c query.Column[*line]) bool { return c.Named })
	for _, c := range columns {
		header = append(header, c.Header)
	}
	for _, x := range l.m.shown() {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.Text(x)
		}
		rows = append(rows, cells)
	}
	return header, rows
}

func (l list) Identities() []string {
	at, ok := l.m.view.Line()
	if !ok {
		return nil
	}
	var b strings.Builder
	for _, p := range at.Parts {
		b.WriteString(p.Text)
	}
	return []string{b.String()}
}

func (l list) Marked() int { return 0 }

func (l list) Click(_, y int, _ time.Time) bool {
	l.m.view.Click(y)
	_, ok := l.m.view.Line()
	return ok
}

func (l list) Wheel(rows int, _ time.Time) { l.m.view.Wheel(rows) }
