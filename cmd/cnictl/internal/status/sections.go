package status

import (
	"fmt"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/gauge"
	"cnictl/cmd/cnictl/internal/nodes"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/show"
)

// Bounds of the bars, in cells.
const (
	barWithoutTerminal = 20
	barLeast, barMost  = 10, 60
	statusRoom         = 24 // what the bars leave to STATUS, where it wants it
)

func (fr Frame) tableOptions() table.Options {
	return table.Options{NoHeaders: fr.NoHeaders, Width: fr.Width, Palette: fr.Palette}
}

// nodes draws the table of nodes, the bars as wide as the rest allows.
func (fr Frame) nodes(items []introspect.NodeIPAM, short map[string]string, rows int) []string {
	shown := items
	if len(items) > rows {
		shown = items[:max(0, rows-1)]
	}
	bar := barWithoutTerminal
	if fr.Width > 0 {
		narrow := fr.nodeTable(shown, short, 0)
		widths := narrow.Widths(table.Options{NoHeaders: true})
		used := 2 * (len(widths) - 1)
		for i, w := range widths {
			switch narrow.Columns[i].Name {
			case "STATUS":
				w = min(w, statusRoom)
			default:
				w = max(w, len(narrow.Columns[i].Name))
			}
			used += w
		}
		bar = min(max(fr.Width-used, barLeast), barMost)
	}
	lines := fr.nodeTable(shown, short, bar).Lines(fr.tableOptions())
	if rest := len(items) - len(shown); rest > 0 {
		lines = append(lines, fr.Palette.Paint(paint.Dim, fmt.Sprintf("%s %d more: %s nodes", fr.more(), rest, fr.Command)))
	}
	return lines
}

func (fr Frame) nodeTable(items []introspect.NodeIPAM, short map[string]string, bar int) table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "NODE"}, {Name: "TYPE", Drop: 3}, {Name: "ENI", Right: true, Drop: 2}, {Name: "POOL"},
		{Name: "USED", Right: true}, {Name: "FREE", Right: true}, {Name: "TARGETS", Drop: 4}, {Name: "MAXPODS", Drop: 1}, {Name: "STATUS", Free: true, Min: 15},
	}}
	for _, n := range items {
		r := nodes.RowOf(n)
		drawn := "?"
		if n.Summary != nil {
			drawn = gauge.Bar(gauge.Pool{Assigned: r.Assigned, Cooling: r.Cooling, Free: r.Free, Limit: r.Limit}, bar, fr.signs(), fr.Palette)
		}
		t.Rows = append(t.Rows, []table.Cell{
			{Text: nameIn(short, n.Metadata.Name)}, {Text: r.Type}, {Text: r.ENIs}, {Text: drawn, Raw: true},
			{Text: r.Used}, {Text: r.FreeText}, {Text: r.Warm}, {Text: r.MaxPods, Class: r.MaxPodsClass}, {Text: r.Status, Class: r.Class},
		})
	}
	return t
}

// causes shows what nodes report by cause, the worst first.
func (fr Frame) causes(all []introspect.CauseCount, rows int) []string {
	shown := all
	if len(all) > rows {
		shown = all[:max(1, rows-1)]
	}
	t := table.Table{Columns: []table.Column{
		{Name: "SEVERITY"}, {Name: "CAUSE"}, {Name: "NODES", Right: true}, {Name: "ADDS", Right: true, Drop: 2}, {Name: "MEANING", Free: true, Min: 16, Drop: 1},
	}}
	for _, c := range shown {
		_, class := mark(c.Severity)
		t.Rows = append(t.Rows, []table.Cell{
			{Text: string(c.Severity), Class: class}, {Text: c.Code}, {Text: show.Count(c.Nodes)}, {Text: show.Int(c.FailedADDs)}, {Text: c.Title, Class: paint.Dim},
		})
	}
	lines := t.Lines(fr.tableOptions())
	if rest := len(all) - len(shown); rest > 0 {
		lines = append(lines, fr.Palette.Paint(paint.Dim, fmt.Sprintf("%s and %d more: %s status -o wide", fr.more(), rest, fr.Command)))
	}
	return lines
}

// problems lists what is wrong, the worst first.
func (fr Frame) problems(all []introspect.Problem, short map[string]string, clock func(string) time.Time, rows int) []string {
	p := fr.Palette
	if len(all) == 0 {
		return []string{p.Paint(paint.OK, "no problems")}
	}
	shown := all
	if len(all) > rows {
		shown = all[:max(0, rows-1)]
	}
	// What can be long comes last, so that it pushes nothing aside.
	t := table.Table{Columns: []table.Column{{}, {}, {Drop: 1}, {Free: true, Min: 50}}}
	for _, q := range shown {
		mark, class := mark(q.Severity)
		t.Rows = append(t.Rows, []table.Cell{
			{Text: mark, Class: class}, {Text: nameIn(short, q.Node)}, {Text: q.Code, Class: paint.Dim}, {Text: message(q, clock(q.Node))},
		})
	}
	opts := fr.tableOptions()
	opts.NoHeaders = true
	lines := append([]string{p.Paint(paint.Head, fmt.Sprintf("PROBLEMS %d", len(all)))}, t.Lines(opts)...)
	if rest := len(all) - len(shown); rest > 0 {
		lines = append(lines, p.Paint(paint.Dim, fmt.Sprintf("%s %d more: %s status -o wide", fr.more(), rest, fr.Command)))
	}
	return lines
}

// message is what is wrong and when, by the node's clock.
func message(q introspect.Problem, now time.Time) string {
	parts := []string{q.Message}
	if when := nodes.When(q, now); when != "" {
		parts = append(parts, when)
	}
	return strings.Join(parts, ", ")
}

// mark is the sign of a severity.
func mark(s introspect.Severity) (string, paint.Class) {
	switch s {
	case introspect.SeverityError:
		return "!", paint.Bad
	case introspect.SeverityWarning:
		return "W", paint.Warn
	}
	return "i", paint.Dim
}
