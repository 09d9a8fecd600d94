package overview

import (
	"slices"
	"time"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/query"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// Widths of the drawn columns, and the one from which the most wanted wide columns are shown.
const (
	trendLeast, trendMost = 10, 36
	poolLeast, poolMost   = 10, 30
	wideFrom              = 160
)

// shown lists the columns of the table, from the columns that the commands use too. NODE,
// POOL, IP and STATUS are never dropped.
var shown = []query.Shown{
	{Name: "node"},
	{Name: "type", Drop: 6},
	{Name: "zone", Drop: 5, Wide: true},
	{Name: "eni", Drop: 3},
	{Name: "pool"},
	{Name: "ip"},
	{Name: "ip%", Drop: 8, Wide: true},
	{Name: "free", Drop: 2},
	{Name: "cooling", Drop: 10},
	{Name: "trunk", Drop: 9},
	{Name: "maxpods", Drop: 4},
	{Name: "adds", Drop: 6, Wide: true},
	{Name: "ec2", Drop: 9, Wide: true},
	{Name: "latency", Drop: 9, Wide: true},
	{Name: "via", Drop: 9, Wide: true},
	{Name: "version", Drop: 7, Wide: true},
	{Name: "age", Drop: 9, Wide: true},
	{Name: "trend", Drop: 8},
	{Name: "state", Least: stateLeast},
}

// Bounds of STATUS: it always shows a cause and how many wait.
const stateLeast, stateNarrow, stateMost = 18, 28, 46

// columns returns the columns shown and, for filters and orders, all others.
func columns() []query.Column[*store.Node] {
	out := query.Arrange(tables.Nodes(), shown...)
	for i, c := range out {
		if c.Name == "state" {
			out[i].Rank = rank(c.Rank)
		}
	}
	return out
}

func options() components.TableOptions[*store.Node] {
	return components.TableOptions[*store.Node]{
		Columns: columns(),
		ID:      func(n *store.Node) string { return n.Metadata.Name },
		Label:   (*store.Node).Label,
		Fault:   fault,
		Role:    role,
		Order:   "state,-ip%",
		Sort: []components.SortKey{
			{Key: "n", Column: "node", Title: "name"},
			{Key: "s", Column: "state", Title: "state"},
			{Key: "i", Column: "ip%", Title: "IP%"},
			{Key: "f", Column: "free", Title: "free"},
			{Key: "e", Column: "eni", Title: "ENIs"},
			{Key: "t", Column: "type", Title: "type"},
			{Key: "z", Column: "zone", Title: "zone"},
			{Key: "a", Column: "age", Title: "age"},
		},
		Limits: map[string]components.Limit{
			"type":  {Most: 20, Narrow: 15}, // fits the longest EC2 type; fits all but a few
			"state": {Most: stateMost, Narrow: stateNarrow},
		},
		Drawn:  map[string]int{"pool": poolLeast, "trend": trendLeast},
		Grow:   []components.Growth{{Column: "pool", Most: poolMost}, {Column: "trend", Most: trendMost}},
		Sparse: map[string]string{"trunk": ""},
		From:   map[string]int{"zone": wideFrom, "version": wideFrom, "adds": wideFrom},
		Draw:   drawn,
		Empty:  "no nodes yet",
		Rows:   "nodes",
	}
}

func drawn(s draw.Style, n *store.Node, column string, width int) string {
	if column == "pool" {
		return bar(s, width, n)
	}
	tint := role(n, column)
	if tint == draw.Text {
		tint = draw.Faint // the pool is what to look at
	}
	return s.Paint(tint, show.Spark(n.Trend(width), width, 1, s.ASCII))
}

// bar draws the pool of a node; a node without one has a sign like its other cells.
func bar(s draw.Style, width int, n *store.Node) string {
	p, ok := draw.PoolOf(n)
	if !ok {
		sign := show.Unknown
		if c := n.State; c != document.StateNoDaemon && c != document.StateAPIOnly && !n.Known {
			sign = tables.Unread
		}
		return s.Paint(draw.Faint, s.Fit(sign, width, false))
	}
	return p.Gauge(s, width)
}

// rank orders states worst first. At the same severity, problems of a node come before
// problems with reading it. Healthy nodes come after all others, whatever else their daemon
// reports; nodes that need no daemon come last.
func rank(worst func(*store.Node) int) func(*store.Node) int {
	const well, nowhere = 100, 101
	return func(n *store.Node) int {
		switch {
		case idle(n):
			return nowhere
		case ok(n):
			return well
		}
		if unread(n) {
			return 2*worst(n) + 1
		}
		return 2 * worst(n)
	}
}

// unread reports whether the only known problem of a node is that it was not read in full.
// It may be healthy, and is read again.
func unread(n *store.Node) bool {
	return n.Severity == document.SeverityWarning && !slices.ContainsFunc(n.Problems, func(p document.Problem) bool {
		return p.Effect == document.SeverityWarning && p.Code != fleet.CodeMetricsOnly && p.Code != fleet.CodePartlyReadable
	})
}

// idle reports whether a node needs no daemon: Fargate, Windows.
func idle(n *store.Node) bool {
	return n.State == document.StateNoDaemon && !fault(n)
}

// ok reports whether a node answers and is healthy.
func ok(n *store.Node) bool {
	return n.State == document.StateLive && !fault(n) && n.Well()
}

// late returns the age of a row, and whether the row is older than it should be.
func late(n *store.Node, now time.Time, every time.Duration) (time.Duration, bool) {
	if n.SampledAt == nil || n.Summary == nil || every <= 0 {
		return 0, false
	}
	age := now.Sub(*n.SampledAt)
	return age, age > 2*every
}

// state returns a node's state in a few words, with a short reason if it could not be read.
// The screen of the node shows the full sentence.
func state(n *store.Node, now time.Time) (string, bool) {
	if n.State == document.StateStale && n.Error != nil && n.SampledAt != nil {
		return "stale " + show.Since(n.SampledAt, now) + ": " + fleet.ReasonText(n.Error.Reason), true
	}
	if n.Summary != nil || n.Error == nil || n.Error.Reason == "" || idle(n) {
		return "", false
	}
	if string(n.State) == string(n.Error.Reason) {
		return string(n.State), true
	}
	return fleet.ReadingWord(n.State) + ": " + fleet.ReasonText(n.Error.Reason), true
}
