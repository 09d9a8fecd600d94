package overview

import (
	"slices"
	"strconv"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/query"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// groupings are the columns by whose texts nodes are grouped, in the order of the key.
var groupings = []struct{ column, header, title string }{
	{}, // not grouped
	{"nodegroup", "NODEGROUP", "node group"},
	{"zone", "ZONE", "zone"},
	{"type", "TYPE", "type"},
	{"cause", "CAUSE", "cause"},
}

// group has the subtotals of the nodes with the same text in a column.
type group struct {
	name                    string
	nodes, errors, warnings int
	waiting                 int
	limitless               bool // the limit of some pool is not known
	pool                    draw.Pool
	worst                   *store.Node
}

// group steps to the next grouping for which the nodes have texts.
func (p *Page) group(c pages.Context) {
	for p.by = (p.by + 1) % len(groupings); p.by > 0; p.by = (p.by + 1) % len(groupings) {
		by, _ := query.Find(tables.Nodes(), groupings[p.by].column)
		if slices.ContainsFunc(p.table.All(), func(n *store.Node) bool { return !query.IsUnknown(by.Text(n)) }) {
			break
		}
	}
	if p.by == 0 {
		p.groups = nil
		return
	}
	p.into(p.by, c)
}

// into groups the nodes.
func (p *Page) into(by int, c pages.Context) {
	o := groupOptions(groupings[by].header)
	o.Show = func(g *group, column string) (string, bool) { // the state of the worst, as the list of nodes shows it
		if column != "state" {
			return "", false
		}
		return p.short(g.worst, column)
	}
	p.by, p.groups = by, components.NewTable(o)
	p.regroup(c)
}

// regroup adds up the nodes that match the filter.
func (p *Page) regroup(c pages.Context) {
	if p.by == 0 {
		return
	}
	p.groups.SetRows(grouped(p.table.Rows(), groupings[p.by].column), c.Clock)
	p.groups.Settle(c.Clock)
}

func grouped(nodes []*store.Node, column string) []*group {
	by, _ := query.Find(tables.Nodes(), column)
	state, _ := query.Find(columns(), "state")
	found := map[string]*group{}
	var out []*group
	for _, n := range nodes {
		name := by.Text(n)
		g := found[name]
		if g == nil {
			g = &group{name: name, worst: n}
			found[name], out = g, append(out, g)
		}
		g.add(n)
		if state.Rank(n) < state.Rank(g.worst) {
			g.worst = n
		}
	}
	return out
}

func (g *group) add(n *store.Node) {
	g.nodes++
	switch {
	case n.Severity.Harms():
		g.errors++
	case n.Severity == document.SeverityWarning:
		g.warnings++
	}
	if n.Known && n.Summary.WaitingADDs != nil {
		g.waiting += *n.Summary.WaitingADDs
	}
	if pool, ok := draw.PoolOf(n); ok {
		g.pool, g.limitless = g.pool.Add(pool), g.limitless || pool.Limit == 0
	}
}

// within is the filter of the nodes of the group under the cursor.
func (p *Page) within() string {
	g, ok := p.groups.Row()
	if !ok {
		return p.table.Filter()
	}
	term := query.Term(groupings[p.by].column, g.name)
	if f := p.table.Filter(); f != "" {
		return f + " " + term
	}
	return term
}

// above is the level that the nodes of a group were listed from.
type above struct {
	by     int    // of groupings; 0 = the nodes are not those of a group
	name   string // of the group
	filter string // of the groups' nodes
	within string // filter of the nodes of the group
}

// expand lists the nodes of the group under the cursor.
func (p *Page) expand(c pages.Context) {
	g, ok := p.groups.Row()
	if !ok {
		return
	}
	p.from = above{by: p.by, name: g.name, filter: p.table.Filter(), within: p.within()}
	_ = p.table.SetFilter(p.from.within) // made of valid terms
	p.by, p.groups = 0, nil
	p.table.Settle(c.Clock)
}

// inGroup reports whether the nodes of one group are listed.
func (p *Page) inGroup() bool { return p.by == 0 && p.from.by > 0 && p.table.Filter() == p.from.within }

// Leave implements pages.Leaver: from the nodes of a group to the groups, and from these to all nodes.
func (p *Page) Leave(c pages.Context) bool {
	switch from := p.from; {
	case p.by > 0 && p.groups.Filter() == "":
		p.by, p.groups = 0, nil
	case p.inGroup():
		_ = p.table.SetFilter(from.filter) // it was in use, so it is valid
		p.into(from.by, c)
		p.groups.Select(from.name)
	default:
		return false
	}
	p.from = above{}
	return true
}

func groupOptions(header string) components.TableOptions[*group] {
	number := func(name, header, title string, drop int, of func(*group) int) query.Column[*group] {
		return query.Column[*group]{
			Name: name, Header: header, Title: title, Right: true, Drop: drop,
			Text: func(g *group) string { return draw.Thousands(of(g)) }, Number: func(g *group) (float64, bool) { return float64(of(g)), true },
		}
	}
	most := number("max", "MAX", "addresses that pods can have", 6, func(g *group) int { return g.pool.Limit })
	most.Text = func(g *group) string {
		if g.limitless {
			return "≥" + draw.Thousands(g.pool.Limit)
		}
		return draw.Thousands(g.pool.Limit)
	}
	return components.TableOptions[*group]{
		Columns: []query.Column[*group]{
			{Name: "group", Header: header, Title: "what the nodes have in common", Least: 12, Text: func(g *group) string { return g.name }},
			number("nodes", "NODES", "how many nodes", 0, func(g *group) int { return g.nodes }),
			{
				Name: "pool", Header: "POOL", Title: "addresses used, cooling and free, of as many as pods can have", Drop: 1,
				Text: fullness, Number: func(g *group) (float64, bool) {
					return float64(g.pool.Assigned) / float64(max(g.pool.Limit, 1)), g.pool.Limit > 0
				},
			},
			number("used", "USED", "addresses assigned to pods", 3, func(g *group) int { return g.pool.Assigned }),
			number("cooling", "COOLING", "addresses cooling down after their pod was deleted", 7, func(g *group) int { return g.pool.Cooling }),
			number("free", "FREE", "addresses available to new pods", 4, func(g *group) int { return g.pool.Free }),
			most,
			number("waiting", "WAITING", "ADDs waiting for an address", 5, func(g *group) int { return g.waiting }),
			number("errors", "ERR", "nodes with an error", 0, func(g *group) int { return g.errors }),
			number("warnings", "WARN", "nodes with a warning", 2, func(g *group) int { return g.warnings }),
			{
				Name: "state", Header: "WORST", Title: "STATUS of the worst node", Least: stateLeast,
				Text: worstText, Rank: func(g *group) int { return g.worst.Severity.Rank() },
			},
		},
		ID:    func(g *group) string { return g.name },
		Fault: func(g *group) bool { return g.errors+g.warnings > 0 },
		Role:  groupRole,
		Order: "-waiting,-errors,-warnings,-pool",
		Sort: []components.SortKey{
			{Key: "n", Column: "group", Title: "name"}, {Key: "o", Column: "nodes", Title: "nodes"}, {Key: "i", Column: "pool", Title: "pool"},
			{Key: "f", Column: "free", Title: "free"}, {Key: "e", Column: "errors", Title: "errors"},
			{Key: "w", Column: "waiting", Title: "waiting"},
		},
		Limits: map[string]components.Limit{"group": {Most: 48, Narrow: 28}, "state": {Most: stateMost, Narrow: stateNarrow}},
		Drawn:  map[string]int{"pool": poolLeast},
		Grow:   []components.Growth{{Column: "pool", Most: 2 * poolMost}},
		Draw: func(s draw.Style, g *group, _ string, width int) string {
			if g.pool.Limit == 0 {
				return s.Paint(draw.Faint, s.Fit(show.Unknown, width, false))
			}
			return g.pool.Gauge(s, width)
		},
		Empty: "no nodes yet",
		Rows:  "groups",
	}
}

func fullness(g *group) string {
	if g.pool.Limit == 0 {
		return show.Unknown
	}
	return strconv.Itoa(100*g.pool.Assigned/g.pool.Limit) + "%"
}

func worstText(g *group) string { return g.worst.Status() }

func groupRole(g *group, column string) draw.Role {
	switch {
	case column == "state":
		return stateRole(g.worst, dim(g.worst))
	case column == "errors" && g.errors > 0, column == "waiting" && g.waiting > 0:
		return draw.Bad
	case column == "warnings" && g.warnings > 0:
		return draw.Warn
	case column == "group" && g.errors > 0:
		return draw.BadRow
	case column == "group" && g.warnings > 0:
		return draw.WarnRow
	case column == "errors", column == "warnings", column == "waiting", column == "cooling" && g.pool.Cooling == 0:
		return draw.Faint
	}
	return draw.Text
}
