// Package subnets is the screen of subnets: how many addresses are free, held by nodes,
// wasted, used by others, and which /28 blocks can still become prefixes.
package subnets

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/components"
	"cnictl/tui/pages"
	"cnictl/tui/pages/parts"
	"cnictl/tui/source"
	"cnictl/tui/theme"
)

// Panes of the screen.
const (
	paneSubnets = iota
	paneMap
)

// Of a subnet of a VPC: EC2 keeps the first four addresses and the last one, and none is
// larger than a /16.
const (
	reserved   = 5
	largest    = 16
	blockSize  = 16
	blockBits  = 28
	smallRange = 28
)

// Model is the screen.
type Model struct {
	table  *components.Table[*row]
	frame  parts.Frame
	first  string
	trends map[string]trend
	cursor int // block under the cursor of the map
	of     string
	cells  []uint8 // of the map: block i of the subnet's range
	wide   int     // cells in a row of the map, as last drawn
	view   uint64
	seen   bool
}

// New opens the screen.
func New(o pages.Open) pages.Page {
	m := &Model{first: o.Subnet, trends: map[string]trend{}, wide: 1}
	m.table = components.NewTable(components.TableOptions[*row]{
		Columns: columns(), ID: func(r *row) string { return r.ID },
		Fault: func(r *row) bool { return r.short() }, Role: role, Sort: sortKeys(), Order: "-full,subnet",
		Draw: draw, Drawn: map[string]int{"gauge": 14, "trend": 12},
		Empty: "No node has told of a subnet yet.",
	})
	return m
}

// row is one subnet.
type row struct {
	store.SubnetUse
	Usable int // addresses of the range that can be had; 0: not known
	Others *int
	Age    string // of EC2's count
	Trend  trend
	Left   forecast
}

// rowsOf makes the rows of a view.
func rowsOf(v *store.View, trends map[string]trend, now time.Time) []*row {
	if v == nil {
		return nil
	}
	out := make([]*row, 0, len(v.Subnets))
	for _, u := range v.Subnets {
		r := &row{SubnetUse: u, Usable: usable(u.Range), Age: show.Since(u.AsOf, now), Trend: trends[u.ID]}
		r.Left = r.Trend.project()
		if u.Available != nil && r.Usable > 0 {
			if others := r.Usable - *u.Available - u.Held; others >= 0 {
				r.Others = &others
			}
		}
		out = append(out, r)
	}
	return out
}

// usable is how many addresses an IPv4 subnet gives.
func usable(p netip.Prefix) int {
	if !p.IsValid() || !p.Addr().Is4() || p.Bits() < largest || p.Bits() > smallRange {
		return 0
	}
	return 1<<(32-p.Bits()) - reserved
}

// full is the share of a subnet that is taken.
func (r *row) full() (float64, bool) {
	if r.Usable == 0 || r.Available == nil {
		return 0, false
	}
	return 1 - float64(*r.Available)/float64(r.Usable), true
}

// short tells that a subnet is about to run out: less than a twentieth is free.
func (r *row) short() bool {
	full, ok := r.full()
	return ok && full > 0.95 || r.Available != nil && *r.Available == 0
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
		{Name: "gauge", Header: "FULL", Title: "share that is taken: held by nodes, then others", Drop: 3, Text: percent, Number: func(r *row) (float64, bool) { return r.full() }},
		{Name: "full", Header: "%", Title: "share that is taken", Right: true, Text: percent, Number: func(r *row) (float64, bool) { return r.full() }},
		{Name: "free", Header: "FREE", Title: "free addresses, as EC2 told last", Right: true, Text: func(r *row) string { return show.Int(r.Available) }, Number: optional(func(r *row) *int { return r.Available })},
		{Name: "held", Header: "HELD", Title: "addresses that nodes hold, their interfaces' own included", Right: true, Drop: 1, Text: func(r *row) string { return show.Count(r.Held) }, Number: count(func(r *row) int { return r.Held })},
		{Name: "wasted", Header: "WASTED", Title: "held and used by no pod", Right: true, Drop: 2, Text: func(r *row) string { return show.Count(r.Wasted) }, Number: count(func(r *row) int { return r.Wasted })},
		{Name: "others", Header: "OTHERS", Title: "taken by others than the nodes read: load balancers, databases, nodes not read", Right: true, Drop: 6, Text: func(r *row) string { return show.Int(r.Others) }, Number: optional(func(r *row) *int { return r.Others })},
		{Name: "trend", Header: "TREND", Title: "free addresses since the screen was opened, scaled to the range", Drop: 9, Text: func(r *row) string { return r.Trend.words() }, Number: func(r *row) (float64, bool) { return r.Left.PerHour, len(r.Trend) > 1 }},
		{Name: "left", Header: "LEFT", Title: "until it is empty, at the measured rate", Drop: 7, Text: func(r *row) string { return show.OrUnknown(r.Left.left()) },
			Number: func(r *row) (float64, bool) { return r.Left.Left.Hours(), r.Left.Left > 0 }},
		{Name: "nodes", Header: "NODES", Title: "nodes that have interfaces there or may make them", Right: true, Drop: 8, Text: func(r *row) string { return strconv.Itoa(r.Nodes) }, Number: count(func(r *row) int { return r.Nodes })},
		{Name: "enis", Header: "ENIS", Title: "interfaces there", Right: true, Drop: 8, Wide: true, Text: func(r *row) string { return strconv.Itoa(r.ENIs) }, Number: count(func(r *row) int { return r.ENIs })},
		{Name: "asof", Header: "AS OF", Title: "age of EC2's count", Right: true, Drop: 8, Text: func(r *row) string { return r.Age }},
	}
}

func percent(r *row) string {
	full, ok := r.full()
	if !ok {
		return show.Unknown
	}
	return strconv.Itoa(int(full*100)) + "%"
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
		if r.short() {
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
	if column == "trend" {
		return components.Spark(s, width, float64(r.Usable), r.Trend.values())
	}
	if r.Usable == 0 || r.Available == nil {
		return components.Blank(width)
	}
	others := 0
	if r.Others != nil {
		others = *r.Others
	}
	return components.Gauge(s, width, float64(r.Usable),
		components.Part{Value: float64(r.Held - r.Wasted), Role: theme.BarUsed},
		components.Part{Value: float64(r.Wasted), Role: theme.BarFree},
		components.Part{Value: float64(others), Role: theme.BarCooling})
}

// What a block of the map is, beyond store.BlockUse.
const blockReserved = uint8(0xff)

// blocksOf lays the known /28s of a subnet out by their place in its range; null where the
// range is not one of a VPC.
func blocksOf(u store.SubnetUse) []uint8 {
	if usable(u.Range) == 0 {
		return nil
	}
	cells := make([]uint8, 1<<(blockBits-u.Range.Bits()))
	for _, b := range u.Blocks {
		if i, ok := indexOf(u.Range, b.Prefix); ok {
			cells[i] = uint8(b.Use)
		}
	}
	for _, i := range []int{0, len(cells) - 1} {
		if cells[i] == 0 {
			cells[i] = blockReserved
		}
	}
	return cells
}

// indexOf is the place of a /28 in a range.
func indexOf(r, block netip.Prefix) (int, bool) {
	if !block.IsValid() || !r.Contains(block.Addr()) {
		return 0, false
	}
	return int(number(block.Addr())-number(r.Masked().Addr())) / blockSize, true
}

func number(a netip.Addr) uint32 {
	b := a.Unmap().As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// prefixOf is the /28 at a place in a range.
func prefixOf(r netip.Prefix, i int) netip.Prefix {
	n := number(r.Masked().Addr()) + uint32(i)*blockSize
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), blockBits)
}

// block is what is known of the /28 at a place.
func block(u store.SubnetUse, i int) (store.Block, bool) {
	at := prefixOf(u.Range, i)
	j, ok := slices.BinarySearchFunc(u.Blocks, at, func(b store.Block, p netip.Prefix) int { return b.Prefix.Addr().Compare(p.Addr()) })
	if !ok {
		return store.Block{}, false
	}
	return u.Blocks[j], true
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
	return source.Focus{Maps: len(m.cells) > 0 && (!m.frame.Zoom || m.frame.Focus == paneMap)}
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
