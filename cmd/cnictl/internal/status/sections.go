package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// Bounds of the bars, in cells.
const (
	barWithoutTerminal = 20
	barLeast, barMost  = 10, 60
	statusRoom         = 24 // what the bars leave for STATUS, if it needs it
)

func (fr Frame) tableOptions() table.Options {
	return table.Options{NoHeaders: fr.NoHeaders, Width: fr.Width, Palette: fr.Palette}
}

// nodes draws the table of nodes, with bars in the remaining width.
func (fr Frame) nodes(items []*store.Node, short map[string]string, rows int) []string {
	shown := items[:shownOf(len(items), rows)]
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
	return fr.rest(lines, len(items)-len(shown), rows, "nodes")
}

// shownOf returns how many of all rows to show so that a line about the rest fits.
func shownOf(all, rows int) int {
	if all > rows {
		return max(min(rows, 1), rows-1)
	}
	return all
}

// rest adds a line with the command that shows the remaining rows.
func (fr Frame) rest(lines []string, rest, rows int, command string) []string {
	if rest <= 0 || rows < 2 {
		return lines
	}
	text := fmt.Sprintf("%s %d more: %s", fr.more(), rest, fr.command(command))
	return append(lines, fr.Palette.Paint(paint.Dim, text))
}

// command returns a command line for the same nodes, without the flags that select them if
// the terminal is too narrow.
func (fr Frame) command(command string) string {
	text := fr.Command + " " + command
	if full := text + fr.SameNodes; fr.Width <= 0 || show.Width(full)+moreRoom <= fr.Width {
		return full
	}
	return text
}

// moreRoom is the width reserved before a command on its line.
const moreRoom = 12

// cells are the columns of cnictl nodes, for use beside the bar.
var cells = func() map[string]func(*store.Node) string {
	out := map[string]func(*store.Node) string{}
	for _, c := range tables.Nodes() {
		out[c.Name] = c.Text
	}
	return out
}()

func (fr Frame) nodeTable(items []*store.Node, short map[string]string, bar int) table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "NODE"}, {Name: "TYPE", Drop: 3}, {Name: "ENI", Right: true, Drop: 2}, {Name: "POOL"},
		{Name: "USED", Right: true}, {Name: "FREE", Right: true}, {Name: "TARGETS", Drop: 4}, {Name: "MAXPODS", Drop: 1},
		{Name: "STATUS", Free: true, Min: 15},
	}}
	for _, n := range items {
		cell := func(column string) table.Cell {
			return table.Cell{Text: cells[column](n), Class: list.NodeClass(n, column)}
		}
		drawn, used := tables.Unread, cell("assigned")
		if n.Known {
			drawn = show.Unknown
		}
		if pool, ok := draw.PoolOf(n); ok {
			drawn = pool.Gauge(fr.style(), bar)
			if n.Limit != nil && used.Text != show.Unknown {
				used.Text += "/" + show.Count(pool.Limit)
			}
		}
		t.Rows = append(t.Rows, []table.Cell{
			{Text: nameIn(short, n.Metadata.Name)}, cell("type"), cell("eni"), {Text: drawn, Raw: true},
			used, cell("free"), cell("targets"), cell("maxpods"), cell("state"),
		})
	}
	return t
}

// causes shows problems by cause, the worst first: how many nodes report it, some of them,
// and what it is. A single problem on a single node shows its own message.
func (fr Frame) causes(all []*finding, short map[string]string, clock func(string) time.Time, rows int) []string {
	shown := all[:shownOf(len(all), rows)]
	t := table.Table{Columns: []table.Column{
		{}, {Name: "CAUSE"}, {Name: "NODES", Right: true}, {Name: "ADDS", Right: true, Drop: 2, Empty: true}, {Name: "WHERE", Drop: 1},
		{Name: "WHAT", Free: true, Min: 34},
	}}
	for _, c := range shown {
		mark, class := fr.sign(c.Severity), classOf(c.Severity)
		nodes, what := 0, inventory.CauseTitle(c.Code)
		for _, a := range c.Nodes {
			if !a.Node.subnet {
				nodes++
			}
		}
		worst := slices.Clone(c.Nodes)
		slices.SortStableFunc(worst, func(a, b *affected) int { return cmp.Compare(a.Severity.Rank(), b.Severity.Rank()) })
		if len(worst) == 1 && len(worst[0].Problems) == 1 {
			what = message(worst[0].Problems[0], clock(worst[0].Name))
		}
		counted := show.Unknown // a subnet is not a node
		if nodes > 0 {
			counted = show.Count(nodes)
		}
		where := nameIn(short, worst[0].Name)
		switch more := len(worst) - 1; {
		case more > 0 && worst[0].Node.subnet && more == nodes:
			where += " +" + human.Plural(nodes, "node", "nodes")
		case more > 0:
			where += fmt.Sprintf(" +%d", more)
		}
		adds := ""
		if c.Times > 0 {
			adds = show.Count(c.Times)
		}
		t.Rows = append(t.Rows, []table.Cell{
			{Text: mark, Class: class}, {Text: c.Code, Class: class}, {Text: counted}, {Text: adds}, {Text: where}, {Text: what},
		})
	}
	return fr.rest(t.Lines(fr.tableOptions()), len(all)-len(shown), rows, "status -o wide")
}

// unreadable returns one line about the nodes that could not be read: how many, why, and the
// command that lists them. If it gets too long, the rarest reasons are dropped rather than
// the command.
func (fr Frame) unreadable(reasons []document.ReasonCount) string {
	unread := 0
	var texts []string
	for _, r := range reasons {
		unread += r.Nodes
		texts = append(texts, show.Safe(fleet.ReasonText(r.Reason))+" "+show.Count(r.Nodes))
	}
	text := fmt.Sprintf("!  %d unreadable", unread)
	hint := "  " + fr.Command + " nodes --filter reading!=live"
	fits := func(hint string) bool {
		return fr.Width <= 0 || show.Width(text+": "+texts[0]+", "+fr.more()+hint) <= fr.Width
	}
	switch full := hint + fr.SameNodes; {
	case fits(full):
		hint = full
	case !fits(hint):
		hint = ""
	}
	for i, r := range texts {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		rest := ""
		if i < len(texts)-1 {
			rest = ", " + fr.more()
		}
		if fr.Width > 0 && show.Width(text+sep+r+rest)+show.Width(hint) > fr.Width {
			if i > 0 {
				text += ", " + fr.more()
			}
			break
		}
		text += sep + r
	}
	return fr.Palette.Paint(paint.Bad, text) + fr.Palette.Paint(paint.Dim, hint)
}

// problems lists every problem, the worst first.
func (fr Frame) problems(all []document.Problem, short map[string]string, clock func(string) time.Time) []string {
	// What can be long comes last, so that it shifts nothing else.
	t := table.Table{Columns: []table.Column{{}, {}, {Drop: 1}, {Free: true, Min: 50}}}
	for _, q := range all {
		mark, class := fr.sign(q.Effect), classOf(q.Effect)
		t.Rows = append(t.Rows, []table.Cell{
			{Text: mark, Class: class}, {Text: nameIn(short, q.Node)}, {Text: q.Name(), Class: paint.Dim}, {Text: message(q, clock(q.Node))},
		})
	}
	opts := fr.tableOptions()
	opts.NoHeaders = true
	return append([]string{fr.Palette.Paint(paint.Head, fmt.Sprintf("PROBLEMS %d", len(all)))}, t.Lines(opts)...)
}

// message formats a problem and when it occurred, by the node's clock.
func message(q document.Problem, now time.Time) string {
	parts := []string{q.Message}
	if when := list.When(q, now); when != "" {
		parts = append(parts, when)
	}
	return strings.Join(parts, ", ")
}

// sign returns a severity in one character.
func (fr Frame) sign(s document.Severity) string { return fr.style().Pick(s.Sign(), s.SignASCII()) }

// classOf returns the colour of a severity.
func classOf(s document.Severity) paint.Class {
	switch {
	case s.Harms():
		return paint.Bad
	case s == document.SeverityWarning:
		return paint.Warn
	}
	return paint.Dim
}
