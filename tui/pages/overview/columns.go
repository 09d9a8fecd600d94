package overview

import (
	"slices"
	"time"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/components"
	"cnictl/tui/theme"
)

// trendCells is the width of the trend, a cell for a minute and a half.
const trendCells = 10

// shown are the columns of the table, from the one table of columns that the commands
// use too. NODE, IP and STATUS never go.
var shown = []query.Shown{
	{Name: "node"},
	{Name: "type", Drop: 6},
	{Name: "zone", Drop: 5, Wide: true},
	{Name: "eni", Drop: 3},
	{Name: "ip"},
	{Name: "ip%", Drop: 4, Wide: true},
	{Name: "warm", Drop: 4},
	{Name: "cooling", Drop: 8},
	{Name: "trunk", Drop: 7},
	{Name: "maxpods", Drop: 2},
	{Name: "adds", Drop: 9, Wide: true},
	{Name: "ec2", Drop: 9, Wide: true},
	{Name: "latency", Drop: 9, Wide: true},
	{Name: "via", Drop: 9, Wide: true},
	{Name: "version", Drop: 9, Wide: true},
	{Name: "age", Drop: 9, Wide: true},
	{Name: "trend", Drop: 9},
	{Name: "state", Least: stateLeast},
}

// stateLeast has room for most reasons why a node cannot be read, and for the trend beside it.
const stateLeast = 18

// columns are those shown and, for filters and orders, all the others.
func columns() []query.Column[*store.Node] {
	out := query.Arrange(store.NodeColumns(), shown...)
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
		Row:     whole,
		Order:   "state,-ip%",
		Sort: []components.SortKey{
			{Key: "n", Column: "node", Title: "name"},
			{Key: "s", Column: "state", Title: "state"},
			{Key: "i", Column: "ip%", Title: "IP%"},
			{Key: "w", Column: "warm", Title: "warm"},
			{Key: "e", Column: "eni", Title: "ENIs"},
			{Key: "t", Column: "type", Title: "type"},
			{Key: "z", Column: "zone", Title: "zone"},
			{Key: "a", Column: "age", Title: "age"},
		},
		Limits: map[string]components.Limit{
			"type":  {Most: 20, Narrow: 15}, // the longest type EC2 has; all but a few
			"state": {Most: 48, Narrow: 20}, // "unreachable: timeout" is worth more than kubelet's setting
		},
		Drawn: map[string]int{"trend": trendCells},
		Draw:  draw,
		Empty: "no nodes yet",
	}
}

func draw(s components.Style, n *store.Node, _ string, width int) string {
	return s.Paint(theme.BarUsed, components.Spark(s, width, 1, n.Trend(width)))
}

// rank orders states worst first, of the same weight what is wrong with a node before what
// could not be read of it. What is well comes after all that is not, whatever the daemon
// would add to it; where nothing can run is of no interest and comes last.
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

// unread tells a node of which nothing worse is known than that not all of it was read: it
// may be as well as the others, and is asked again.
func unread(n *store.Node) bool {
	return n.Severity == document.SeverityWarning && !slices.ContainsFunc(n.Problems, func(p document.Problem) bool {
		return p.Severity == document.SeverityWarning && p.Code != fleet.CodeMetricsOnly && p.Code != fleet.CodePartlyReadable
	})
}

// idle tells a node that runs no daemon and need not: Fargate, Windows.
func idle(n *store.Node) bool {
	return n.State == document.StateNoDaemon && n.Severity != document.SeverityError && n.Severity != document.SeverityWarning
}

// ok tells a node that answers and is well.
func ok(n *store.Node) bool {
	return n.State == document.StateLive && n.Severity != document.SeverityError && n.Severity != document.SeverityWarning && n.Well()
}

// late is when a row is older than it should be: its age is said then.
func late(n *store.Node, now time.Time, every time.Duration) (time.Duration, bool) {
	if n.SampledAt == nil || n.Summary == nil || every <= 0 {
		return 0, false
	}
	age := now.Sub(*n.SampledAt)
	return age, age > 2*every
}

// state is a node's in few words: of one that could not be read the reason's word, the
// sentence stands on the node's own screen.
func state(n *store.Node, now time.Time) (string, bool) {
	if n.State == document.StateStale && n.Error != nil && n.SampledAt != nil {
		return show.Safe("stale " + show.Since(n.SampledAt, now) + ": " + fleet.ReasonText(n.Error.Reason)), true
	}
	if n.Summary != nil || n.Error == nil || n.Error.Reason == "" || idle(n) {
		return "", false
	}
	if string(n.State) == string(n.Error.Reason) {
		return show.Safe(string(n.State)), true
	}
	return show.Safe(fleet.ReadingWord(n.State) + ": " + fleet.ReasonText(n.Error.Reason)), true
}
