// Package subnets is the screen of subnets: how many addresses are free, held by nodes,
// held free, used by others, and which /28 blocks can still become prefixes.
package subnets

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/query"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// Panes of the screen.
const (
	paneSubnets = iota
	paneMap
)

// Model is the screen.
type Model struct {
	table *components.Table[*row]
	frame components.Frame
	first string
	board board
	of    string               // subnet that the board shows
	whole *inventory.SubnetMap // of that subnet, with all nodes; nil until a block is looked at
	view  uint64
	seen  bool

	forecasts inventory.Forecasts
}

// New opens the screen.
func New(o pages.Open) pages.Page {
	m := &Model{first: o.Subnet, forecasts: inventory.Forecasts{}, board: board{wide: 1}, frame: components.Frame{Top: true}}
	m.table = components.NewTable(components.TableOptions[*row]{
		Columns: columns(), ID: func(r *row) string { return r.ID },
		Fault: func(r *row) bool { return inventory.SubnetShort(r.SubnetUse) }, Role: role, Sort: sortKeys(), Order: "-full,subnet",
		Draw: bar, Drawn: map[string]int{"gauge": 14, "trend": 12},
		Limits: map[string]components.Limit{"subnet": {Most: 24, Narrow: 24}, "zone": {Most: 12, Narrow: 12}},
		Empty:  "No subnets reported yet.", Leads: true, Rows: "subnets",
	})
	m.frame.Bodies = []components.Body{m.table, &m.board}
	return m
}

// row is one subnet.
type row = inventory.Subnet

// rowsOf makes the rows of a view.
func rowsOf(v *store.View, known inventory.Forecasts, now time.Time) []*row {
	if v == nil {
		return nil
	}
	out := make([]*row, 0, len(v.Subnets))
	for _, u := range v.Subnets {
		out = append(out, known.Subnet(u, now))
	}
	return out
}

// words describes the trend of the free addresses, or since when there are none.
func words(r *row) string {
	if at, ok := r.Trend.Emptied(); ok {
		return r.Forecast.Words() + " since " + strings.TrimSpace(draw.Clock(at, r.Now)) + ", " + human.Age(r.Now.Sub(at)) + " ago"
	}
	return cmp.Or(r.Trend.Words(), "trend needs more samples (EC2's count is read every 10 minutes)")
}

// columns returns the columns of cnictl subnets, and those that only the screen draws.
func columns() []query.Column[*row] {
	out := query.Arrange(tables.Subnets(),
		query.Shown{Name: "subnet", Least: 15}, query.Shown{Name: "zone"}, query.Shown{Name: "cidr", Drop: 4}, query.Shown{Name: "full"},
		query.Shown{Name: "free"}, query.Shown{Name: "held", Drop: 1}, query.Shown{Name: "wasted", Drop: 2}, query.Shown{Name: "others", Drop: 6},
		query.Shown{Name: "left"}, query.Shown{Name: "nodes", Drop: 8}, query.Shown{Name: "enis", Drop: 8, Wide: true},
		query.Shown{Name: "asof", Drop: 8})
	const full, left = 3, 8
	trend := query.Column[*row]{Name: "trend", Header: "TREND", Title: "free addresses so far, scaled to the range", Drop: 9, Text: words,
		Number: func(r *row) (float64, bool) { return r.Forecast.PerHour, r.Forecast.Measured() }}
	gauge := out[full]
	gauge.Name, gauge.Header, gauge.Title, gauge.Right, gauge.Drop = "gauge", "", "share that is taken: held by nodes, then others", false, 3
	return slices.Insert(slices.Insert(out, left, trend), full, gauge)
}

func sortKeys() []components.SortKey {
	return []components.SortKey{
		{Key: "n", Column: "subnet", Title: "name"}, {Key: "i", Column: "full", Title: "full"}, {Key: "f", Column: "free", Title: "free"},
		{Key: "h", Column: "held", Title: "held"}, {Key: "w", Column: "wasted", Title: "held free"},
		{Key: "z", Column: "zone", Title: "zone"}, {Key: "l", Column: "left", Title: "time left"},
	}
}

// role returns the colour of a cell. The row of a subnet that is short is tinted as a whole.
func role(r *row, column string) draw.Role {
	short := inventory.SubnetShort(r.SubnetUse)
	switch column {
	case "free", "full", "left":
		if short {
			return draw.Bad
		}
	}
	switch {
	case short:
		return draw.BadRow
	case column == "left":
		if r.Forecast.Falls() {
			return draw.Warn
		}
		return draw.Faint
	case column == "wasted":
		if r.Held > 0 && r.Wasted*2 > r.Held && r.Wasted > 64 {
			return draw.Warn
		}
	case column == "cidr", column == "zone", column == "asof":
		return draw.Faint
	}
	return draw.Text
}

func bar(s draw.Style, r *row, column string, width int) string {
	usable := float64(inventory.Usable(r.Range))
	if column == "trend" {
		return s.Paint(draw.Faint, show.Spark(r.Trend.Values(), width, usable, s.ASCII))
	}
	if usable == 0 || r.Available == nil {
		return draw.Blank(width)
	}
	others := 0
	if n := inventory.OtherAddresses(r.SubnetUse); n != nil {
		others = *n
	}
	alarm := draw.Text
	if inventory.SubnetShort(r.SubnetUse) { // the bar has the colour of the number beside it
		alarm = draw.BadRow
	}
	return draw.Gauge(s, width, usable,
		draw.Part{Value: float64(r.Held - r.Wasted), Role: draw.BarUsed, Over: alarm},
		draw.Part{Value: float64(r.Wasted), Role: draw.BarFree, Over: alarm},
		draw.Part{Value: float64(others), Role: draw.BarOthers, Over: alarm})
}

// Name implements pages.Page.
func (m *Model) Name() string { return "subnets" }

// Title is the breadcrumb.
func (m *Model) Title() string { return "Subnets" }

// Focus prefers no node. While a map is shown, it requests the addresses of all nodes.
func (m *Model) Focus(pages.Context) watch.Focus {
	return watch.Focus{Maps: len(m.board.cells) > 0 && (!m.frame.Zoom || m.frame.Focus == paneMap)}
}

// Row is the subnet under the cursor.
func (m *Model) Row(pages.Context) any {
	if r, ok := m.table.Row(); ok {
		return r.Subnet
	}
	return nil
}

// List is the table of subnets while that is focused.
func (m *Model) List() components.List { return m.frame.List() }
