// Package subnets is the screen of subnets: how many addresses are free, held by nodes,
// wasted, used by others, and which /28 blocks can still become prefixes.
package subnets

import (
	"cmp"
	"strconv"
	"time"

	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/subnets"
	"cnictl/tui/components"
	"cnictl/tui/pages"
	"cnictl/tui/pages/panes"
	"cnictl/tui/source"
	"cnictl/tui/theme"
)

// Panes of the screen.
const (
	paneSubnets = iota
	paneMap
)

// Model is the screen.
type Model struct {
	table  *components.Table[*row]
	frame  panes.Frame
	first  string
	trends subnets.Trends
	board  board
	of     string // subnet that the board shows
	view   uint64
	seen   bool
}

// New opens the screen.
func New(o pages.Open) pages.Page {
	m := &Model{first: o.Subnet, trends: subnets.Trends{}, board: board{wide: 1}}
	m.table = components.NewTable(components.TableOptions[*row]{
		Columns: columns(), ID: func(r *row) string { return r.ID },
		Fault: func(r *row) bool { return subnets.Short(r.SubnetUse) }, Role: role, Sort: sortKeys(), Order: "-full,subnet",
		Draw: draw, Drawn: map[string]int{"gauge": 14, "trend": 12},
		Empty: "No subnets reported yet.",
	})
	return m
}

// row is one subnet.
type row struct {
	store.SubnetUse
	Others *int
	Age    string // of EC2's count
	Trend  subnets.Trend
	Left   subnets.Forecast
}

// rowsOf makes the rows of a view.
func rowsOf(v *store.View, trends subnets.Trends, now time.Time) []*row {
	if v == nil {
		return nil
	}
	out := make([]*row, 0, len(v.Subnets))
	for _, u := range v.Subnets {
		t := trends[u.ID]
		out = append(out, &row{SubnetUse: u, Others: subnets.Others(u), Age: show.Since(u.AsOf, now), Trend: t, Left: t.Project()})
	}
	return out
}

func full(r *row) (float64, bool) { return subnets.FullPercent(r.SubnetUse) }

func percent(r *row) string { return subnets.Percent(r.SubnetUse) }

// words say how the free addresses go on.
func (r *row) words() string {
	return cmp.Or(r.Trend.Words(), "trend needs more samples (EC2's count is read every 10 minutes)")
}

func columns() []query.Column[*row] {
	count := func(f func(*row) int) func(*row) (float64, bool) {
		return func(r *row) (float64, bool) { return float64(f(r)), true }
	}
	optional := func(f func(*row) *int) func(*row) (float64, bool) {
		return func(r *row) (float64, bool) {
			if v := f(r); v != nil {
				return float64(*v), true
			}
			return 0, false
		}
	}
	return []query.Column[*row]{
		{Name: "subnet", Header: "SUBNET", Title: "id of the subnet", Least: 15, Text: func(r *row) string { return show.Safe(r.ID) }},
		{Name: "zone", Header: "ZONE", Title: "availability zone of its nodes", Drop: 5, Text: func(r *row) string { return show.OrUnknown(show.Safe(r.Zone)) }},
		{Name: "cidr", Header: "CIDR", Title: "its IPv4 range", Drop: 4, Text: func(r *row) string { return show.OrUnknown(show.Safe(r.CIDR)) }},
		{Name: "gauge", Title: "share that is taken: held by nodes, then others", Drop: 3, Text: percent, Number: full},
		{Name: "full", Header: "FULL", Title: "share that is taken", Right: true, Text: percent, Number: full},
		{Name: "free", Header: "FREE", Title: "free addresses, by EC2's last count", Right: true, Text: func(r *row) string { return show.Int(r.Available) }, Number: optional(func(r *row) *int { return r.Available })},
		{Name: "held", Header: "HELD", Title: "addresses that nodes hold, their interfaces' own included", Right: true, Drop: 1, Text: func(r *row) string { return show.Count(r.Held) }, Number: count(func(r *row) int { return r.Held })},
		{Name: "wasted", Header: "WASTED", Title: "held and used by no pod", Right: true, Drop: 2, Text: func(r *row) string { return show.Count(r.Wasted) }, Number: count(func(r *row) int { return r.Wasted })},
		{Name: "others", Header: "OTHERS", Title: "used by others: load balancers, databases, nodes that were not read", Right: true, Drop: 6, Text: func(r *row) string { return show.Int(r.Others) }, Number: optional(func(r *row) *int { return r.Others })},
		{Name: "trend", Header: "TREND", Title: "free addresses since the screen was opened, scaled to the range", Drop: 9, Text: func(r *row) string { return r.words() }, Number: func(r *row) (float64, bool) { return r.Left.PerHour, len(r.Trend) > 1 }},
		{Name: "left", Header: "LEFT", Title: "until it is empty, at the measured rate", Drop: 7, Text: func(r *row) string { return show.OrUnknown(r.Left.Words()) },
			Number: func(r *row) (float64, bool) { return r.Left.Left.Seconds(), r.Left.Left > 0 }},
		{Name: "nodes", Header: "NODES", Title: "nodes that have interfaces there or may make them", Right: true, Drop: 8, Text: func(r *row) string { return strconv.Itoa(r.Nodes) }, Number: count(func(r *row) int { return r.Nodes })},
		{Name: "enis", Header: "ENIS", Title: "interfaces there", Right: true, Drop: 8, Wide: true, Text: func(r *row) string { return strconv.Itoa(r.ENIs) }, Number: count(func(r *row) int { return r.ENIs })},
		{Name: "asof", Header: "AS OF", Title: "age of EC2's count", Right: true, Drop: 8, Text: func(r *row) string { return r.Age }},
	}
}

func sortKeys() []components.SortKey {
	return []components.SortKey{
		{Key: "n", Column: "subnet", Title: "name"}, {Key: "i", Column: "full", Title: "full"}, {Key: "f", Column: "free", Title: "free"},
		{Key: "h", Column: "held", Title: "held"}, {Key: "w", Column: "wasted", Title: "wasted"}, {Key: "z", Column: "zone", Title: "zone"}, {Key: "l", Column: "left", Title: "time left"},
	}
}

func role(r *row, column string) theme.Role {
	switch column {
	case "free", "full":
		if subnets.Short(r.SubnetUse) {
			return theme.Bad
		}
	case "left":
		if r.Left.Left > 0 {
			return theme.Warn
		}
		return theme.Faint
	case "wasted":
		if r.Held > 0 && r.Wasted*2 > r.Held && r.Wasted > 64 {
			return theme.Warn
		}
	case "cidr", "zone", "asof":
		return theme.Faint
	}
	return theme.Text
}

func draw(s components.Style, r *row, column string, width int) string {
	usable := float64(subnets.Usable(r.Range))
	if column == "trend" {
		return components.Spark(s, width, usable, r.Trend.Values())
	}
	if usable == 0 || r.Available == nil {
		return components.Blank(width)
	}
	others := 0
	if r.Others != nil {
		others = *r.Others
	}
	return components.Gauge(s, width, usable,
		components.Part{Value: float64(r.Held - r.Wasted), Role: theme.BarUsed},
		components.Part{Value: float64(r.Wasted), Role: theme.BarFree},
		components.Part{Value: float64(others), Role: theme.BarOthers})
}

// Name is that of the screen.
func (m *Model) Name() string { return "subnets" }

// Title is the breadcrumb.
func (m *Model) Title() string { return "Subnets" }

// Busy is never: the app takes filters.
func (m *Model) Busy() bool { return false }

// Focus wants no node before others, and the addresses of all for the map while one is
// shown.
func (m *Model) Focus(pages.Context) source.Focus {
	return source.Focus{Maps: len(m.board.cells) > 0 && (!m.frame.Zoom || m.frame.Focus == paneMap)}
}

// Row is the subnet under the cursor.
func (m *Model) Row(pages.Context) any {
	if r, ok := m.table.Row(); ok {
		return r.Subnet
	}
	return nil
}

// List is the table of subnets while it has the focus.
func (m *Model) List() components.List {
	if m.frame.Focus == paneSubnets {
		return m.table
	}
	return nil
}
