package draw

import (
	"math"
	"slices"
	"strings"

	"cnictl/daemon/fleet/store"
	"cnictl/tui/show"
)

// Part is a share of a gauge.
type Part struct {
	Value float64
	Role  Role
	Over  Role // if not Text, the colour in place of the role's, such as that of an alarm
}

// colour is the role that the part is painted in.
func (p Part) colour() Role {
	if p.Over != Text {
		return p.Over
	}
	return p.Role
}

// Pool has the counts of addresses of a pool.
type Pool struct {
	Assigned, Cooling, Free int
	Limit                   int  // how many it may hold; 0: unknown
	Alarms                  bool // the used part stands out if the pool is nearly full or has none free
}

// PoolOf returns the pool of a node, to as many addresses as pods can have; false if the node has
// not reported it.
func PoolOf(n *store.Node) (Pool, bool) {
	if !n.Known || len(n.Summary.Cards) == 0 {
		return Pool{}, false
	}
	p := Pool{Assigned: n.Assigned, Free: n.Free, Alarms: true}
	if most := n.Scale(); most != nil {
		p.Limit = *most
	}
	if n.Cooling != nil {
		p.Cooling = *n.Cooling
	}
	return p, true
}

// Held returns how many addresses the pool has.
func (p Pool) Held() int { return p.Assigned + p.Cooling + p.Free }

// Add returns the sum of two pools. A pool of unknown limit counts with what it holds.
func (p Pool) Add(q Pool) Pool {
	limit := func(p Pool) int {
		if p.Limit == 0 {
			return p.Held()
		}
		return p.Limit
	}
	return Pool{
		Assigned: p.Assigned + q.Assigned, Cooling: p.Cooling + q.Cooling, Free: p.Free + q.Free,
		Limit: limit(p) + limit(q), Alarms: p.Alarms || q.Alarms,
	}
}

// nearlyFull is the share of the limit from which a pool alarms.
const nearlyFull = 0.85

// role returns the colour of the used part.
func (p Pool) role() Role {
	switch {
	case !p.Alarms:
	case p.Free <= 0 && p.Assigned > 0:
		return BadRow
	case p.Limit > 0 && float64(p.Assigned) >= nearlyFull*float64(p.Limit):
		return WarnRow
	}
	return BarUsed
}

// Gauge draws the pool in width cells.
func (p Pool) Gauge(style Style, width int) string {
	return Gauge(style, width, float64(p.Limit),
		Part{Value: float64(p.Assigned), Role: p.role()}, Part{Value: float64(p.Cooling), Role: BarCooling},
		Part{Value: float64(p.Free), Role: BarFree})
}

// Gauge draws the parts of a whole, and the rest as room; parts that add up to more are the
// whole. Print the number next to it: a gauge must not be the only indication. Each nonzero
// part gets a cell, if there are enough.
func Gauge(style Style, width int, whole float64, parts ...Part) string {
	if width <= 0 {
		return ""
	}
	if style.Linear {
		return Blank(width)
	}
	var b strings.Builder
	for i, n := range split(whole, width, parts) {
		b.WriteString(style.Paint(parts[i].colour(), strings.Repeat(sign(parts[i].Role).Pick(style.ASCII), n)))
		width -= n
	}
	b.WriteString(style.Paint(BarRoom, strings.Repeat(show.Room.Pick(style.ASCII), width)))
	return b.String()
}

// split divides cells in proportion to the parts, by running sums, so that they add up. A part
// left without a cell takes one from the largest.
func split(whole float64, width int, parts []Part) []int {
	cells := make([]int, len(parts))
	sum := 0.0
	for _, p := range parts {
		sum += max(p.Value, 0)
	}
	whole = max(whole, sum)
	sum = 0
	done := 0
	for i, p := range parts {
		if p.Value <= 0 {
			continue
		}
		sum += p.Value
		end := min(max(int(math.Round(sum/whole*float64(width))), done+1), width)
		cells[i] = end - done
		done = end
		if largest := slices.Index(cells, slices.Max(cells)); cells[i] == 0 && cells[largest] > 1 {
			cells[largest]--
			cells[i]++
		}
	}
	return cells
}

// sign returns the sign that draws a role. Roles that are not an address state are drawn
// as used.
func sign(r Role) show.Sign {
	switch r {
	case BarCooling:
		return show.Cooling
	case BarFree:
		return show.Free
	case BarRoom:
		return show.Room
	case BarOthers:
		return show.Others
	}
	return show.Used
}

// CellOf returns the cell of a strip that shows a state.
func CellOf(r Role) Cell {
	s := sign(r)
	return Cell{Glyph: s.Glyph, ASCII: s.ASCII, Role: r}
}

// Repeat returns a text n times, "" if n is negative.
func Repeat(s string, n int) string {
	if n <= 0 {
		return ""
	}
	return strings.Repeat(s, n)
}
