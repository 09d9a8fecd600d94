// Package overview is the first screen: the subnets in a line or two and the nodes in a
// table, the worst first.
package overview

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// Page is the overview.
type Page struct {
	table   *components.Table[*store.Node]
	by      int                       // of groupings; 0 = not grouped
	groups  *components.Table[*group] // nil unless grouped
	from    above                     // what Leave goes back to
	subnets []store.SubnetUse
	names   pages.NodeNames
	now     time.Time
	every   time.Duration // between two samples of a node, at most
	since   time.Time     // the page's first update, by Context.Clock
	roomy   bool          // a sentence fits next to the state
}

// New makes the page.
func New(pages.Open) *Page {
	p := &Page{}
	o := options()
	o.Show = p.short
	p.table = components.NewTable(o)
	return p
}

// Name implements pages.Page.
func (*Page) Name() string { return "overview" }

// Title implements pages.Page.
func (p *Page) Title() string {
	switch {
	case p.by > 0:
		return "Nodes by " + groupings[p.by].title
	case p.inGroup():
		return "Nodes by " + groupings[p.from.by].title + ": " + p.from.name
	}
	return "Nodes"
}

// List implements pages.Listed.
func (p *Page) List() components.List {
	if p.by > 0 {
		return p.groups
	}
	return p.table
}

// Update implements pages.Page.
func (p *Page) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	p.now = c.Now
	if p.since.IsZero() {
		p.since = c.Clock
	}
	if c.Source != nil {
		stats := c.Source.Stats()
		if p.every = max(stats.Interval, stats.Background); stats.Outage() {
			p.every = time.Nanosecond // no row is current, so each shows its age
		}
	}
	switch msg := msg.(type) {
	case pages.Changed:
		p.subnets = inventory.FullestSubnets(c.View.Subnets)
		p.names.Learn(c.View.Nodes)
		p.table.SetRows(c.View.Nodes, c.Clock)
		p.regroup(c)
	case pages.Second:
		p.table.Settle(c.Clock)
		p.regroup(c)
	case pages.Mouse:
		if components.Point(p.List(), msg, p.gauges(c.Width, c.Height), c.Clock) {
			return p.in(c)
		}
	case pages.Do:
		return p.do(c, msg.Action)
	}
	return nil
}

func (p *Page) do(c pages.Context, action string) tea.Cmd {
	switch action {
	case keymap.GroupBy:
		p.group(c)
	case keymap.In:
		return p.in(c)
	default:
		p.List().Do(action, c.Clock)
	}
	return nil
}

// in opens the node under the cursor, or lists the nodes of the group.
func (p *Page) in(c pages.Context) tea.Cmd {
	if p.by > 0 {
		p.expand(c)
		return nil
	}
	if n, ok := p.table.Row(); ok {
		return pages.Go(pages.Open{Screen: "node", Node: n.Metadata.Name})
	}
	return nil
}

// At implements pages.Pointing: the node under the cursor and, for the doctor and what-if, the group
// under it, the marked nodes, or else those that match the filter.
func (p *Page) At(pages.Context) (pages.Object, bool) {
	at := pages.Object{Set: true, Filter: p.table.Filter()}
	if p.by > 0 {
		at.Filter = p.within()
		return at, true
	}
	if n, ok := p.table.Row(); ok {
		at.Node = n.Metadata.Name
	}
	if p.table.Marked() > 0 {
		at.Nodes, at.Filter = strings.Join(p.table.Identities(), ","), ""
	}
	return at, true
}

// Focus implements pages.Page. Marked nodes are read as if they were visible.
func (p *Page) Focus(pages.Context) watch.Focus {
	var f watch.Focus
	if p.by > 0 {
		return f
	}
	for _, n := range p.table.Visible() {
		f.Visible = append(f.Visible, n.Metadata.Name)
	}
	if p.table.Marked() > 0 {
		for _, name := range p.table.Identities() {
			if !slices.Contains(f.Visible, name) {
				f.Visible = append(f.Visible, name)
			}
		}
	}
	return f
}

// Row implements pages.Page.
func (p *Page) Row(pages.Context) any {
	n, ok := p.table.Row()
	if !ok || p.by > 0 {
		return nil
	}
	return n.Document()
}

// Lines implements pages.Page.
func (p *Page) Lines(c pages.Context) []string {
	s := c.Style()
	if len(c.View.Nodes) == 0 {
		return draw.Exactly(p.nothing(c).Lines(), c.Width, c.Height)
	}
	p.roomy = c.Width >= sentences
	lines := p.subnetLines(s, c.Width, p.gauges(c.Width, c.Height))
	if p.by > 0 {
		lines = append(lines, p.groups.Lines(s, c.Width, c.Height-len(lines))...)
	} else {
		lines = append(lines, p.table.Lines(s, c.Width, c.Height-len(lines))...)
	}
	return draw.Exactly(lines, c.Width, c.Height)
}

const (
	sentences = 150             // width from which a sentence follows the word of a state
	patience  = 3 * time.Second // after which an empty list needs an explanation
)

// nothing explains why there are no nodes. If the list cannot be read, the app shows that in
// place of the page.
func (p *Page) nothing(c pages.Context) *draw.Sheet {
	sheet := draw.NewSheet(c.Style(), c.Width)
	switch {
	case c.View.Generation == 0 && c.Clock.Sub(p.since) > patience:
		sheet.Add(draw.T(draw.Warn, "No nodes yet."))
		sheet.Add(draw.T(draw.Faint, "The list of nodes is empty or still loading: --nodes and -l/--selector may exclude every node, or the cluster has none yet. New nodes appear as they join."))
	case c.View.Generation == 0:
		sheet.Add(draw.T(draw.Faint, "Loading nodes ..."))
	default:
		sheet.Add(draw.T(draw.Warn, "The cluster has no nodes."))
		sheet.Add(draw.T(draw.Faint, "--nodes and -l/--selector may exclude every node, or the cluster has none yet. New nodes appear as they join."))
	}
	return sheet
}

// short returns a name without the common domain, or a state in a few words.
func (p *Page) short(n *store.Node, column string) (string, bool) {
	if column == "state" {
		text, ok := state(n, p.now)
		if age, old := late(n, p.now, p.every); old && n.State == document.StateLive {
			if !ok {
				text = n.Status()
			}
			return text + ", " + human.Age(age) + " old", true
		}
		if why := sentence(n); p.roomy && why != "" {
			if !ok {
				text = n.Status()
			}
			return text + "  " + why, true
		}
		return text, ok
	}
	return p.names.Cell(n.Metadata.Name, column)
}

// sentence returns a node's worst problem, "" if the word of its state is enough.
func sentence(n *store.Node) string {
	switch {
	case !fault(n):
		return ""
	case n.Error != nil:
		return n.Error.Message
	}
	if p, found := n.Worst(); found {
		return p.Message
	}
	for _, p := range n.Problems {
		if p.Effect == n.Severity {
			return p.Message
		}
	}
	return ""
}

// fault reports whether a node needs attention.
func fault(n *store.Node) bool {
	return n.Severity != "" && n.Severity != document.SeverityInfo
}

// role returns the colour of a cell. The row of a faulty node is tinted as a whole, but figures
// that are not current stay dim: the name and the state show why.
func role(n *store.Node, column string) draw.Role {
	old := dim(n)
	switch {
	case column == "state":
		return stateRole(n, old)
	case old && column != "node":
		return draw.Stale
	case n.Severity.Harms():
		return draw.BadRow
	case n.Severity == document.SeverityWarning:
		return draw.WarnRow
	case old:
		return draw.Stale
	}
	switch column {
	case "type", "zone", "version", "via", "age", "instance":
		return draw.Faint
	case "maxpods":
		if n.Known && n.Summary.MaxPods != nil && n.Summary.MaxPods.Verdict == introspect.MaxPodsOK {
			return draw.Faint // nothing to look at
		}
	case "cooling":
		if n.Cooling == nil || *n.Cooling == 0 {
			return draw.Faint
		}
		return draw.BarCooling
	case "free", "warm":
		if n.OverWarm() {
			return draw.Info
		}
		if n.Known && n.Free == 0 {
			return draw.Warn
		}
	}
	return draw.Text
}

func stateRole(n *store.Node, old bool) draw.Role {
	switch {
	case old && !fault(n):
		return draw.Stale
	case n.Word == store.WordOverWarm:
		return draw.Info
	case ok(n):
		return draw.Good
	case n.Severity != "":
		return pages.SeverityRole(n.Severity)
	case n.State == document.StateLive:
		return draw.Good
	}
	return draw.Faint
}

// dim reports whether the figures of a node are not current.
func dim(n *store.Node) bool {
	switch n.State {
	case document.StateStale, document.StateNoDaemon, document.StateAPIOnly:
		return true
	}
	return false
}
