package lists

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// Pods is the screen of all pods.
type Pods struct {
	rows  *rows[*inventory.Pod]
	names pages.NodeNames
	kube  pages.Documents             // the pods listed by Kubernetes
	why   map[string]*pages.Documents // of nodes with waiting pods
	read  uint64                      // grows with each answer
	since time.Time                   // when the page was first shown
	sums  podSums
}

// podSums are totals over all pods.
type podSums struct {
	pods, without, unread, nodes int
	differ                       map[string]time.Time
}

// patience is how long the first rows wait for the pods from Kubernetes. These include the
// pods without an address, which come first.
const patience = 2 * time.Second

// whyMost limits the nodes for which the reasons of waiting pods are kept.
const whyMost = 16

// NewPods makes the page.
func NewPods(o pages.Open) *Pods {
	p := &Pods{kube: pages.NewDocuments("pods", "", o.Filter), why: map[string]*pages.Documents{}}
	p.rows = newRows(p, components.TableOptions[*inventory.Pod]{
		Columns: tables.Pods(true), ID: func(r *inventory.Pod) string { return r.ID }, Fault: inventory.PodFault, Role: podRole,
		Show:  func(r *inventory.Pod, column string) (string, bool) { return p.short(r, column) },
		Order: "state,pod",
		Sort: []components.SortKey{
			{Key: "n", Column: "pod", Title: "name"}, {Key: "s", Column: "state", Title: "state"}, {Key: "d", Column: "node", Title: "node"},
			{Key: "i", Column: "address", Title: "address"}, {Key: "a", Column: "for", Title: "age"},
		},
		Limits: map[string]components.Limit{"pod": {Most: 100, Narrow: 36}, "why": {Most: 120, Narrow: 40}},
		Sparse: map[string]string{"eni": "", "device": "", "kind": ""}, // of pods without an address
		Empty:  "no pods",
		Rows:   "pods",
	}, o.Filter)
	return p
}

func (p *Pods) short(r *inventory.Pod, column string) (string, bool) {
	if r.Node == "" {
		return "", false
	}
	return p.names.Cell(r.Node, column)
}

// podRole returns the colour of a cell. The row of a pod that needs attention is tinted as a whole.
func podRole(r *inventory.Pod, column string) draw.Role {
	switch {
	case column == "state" || column == "why":
		switch r.State {
		case document.PodWaiting:
			return draw.Bad
		case document.PodUnknown, document.PodLeftOver:
			return draw.Warn
		case document.PodHasAddress, document.PodBranch:
			if column == "state" {
				return draw.Good
			}
		}
		return draw.Faint
	case r.State == document.PodWaiting:
		return draw.BadRow
	case r.State == document.PodUnknown, r.State == document.PodLeftOver:
		return draw.WarnRow
	case r.State == document.PodEnded, column == "eni", column == "kind", column == "device":
		return draw.Faint
	}
	return draw.Text
}

// Name implements pages.Page.
func (*Pods) Name() string { return "pods" }

// Title implements pages.Page.
func (*Pods) Title() string { return "Pods" }

// List implements pages.Listed.
func (p *Pods) List() components.List { return p.rows.Table }

// Focus implements pages.Page.
func (p *Pods) Focus(c pages.Context) watch.Focus {
	return p.rows.Focus(c, func(r *inventory.Pod) string { return r.Node })
}

// Row implements pages.Page.
func (p *Pods) Row(pages.Context) any {
	if r, ok := p.rows.Table.Row(); ok {
		return r.Document()
	}
	return nil
}

// Update implements pages.Page.
func (p *Pods) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pages.Do:
		return p.do(c, msg.Action)
	case pages.Mouse:
		if p.rows.Mouse(c, msg) {
			return p.open()
		}
		return nil
	case pages.Gathered:
		if also, ok := p.rows.Take(msg, c.Clock); ok {
			p.sums, _ = also.(podSums)
		}
		return nil
	case pages.Loaded:
		taken := p.kube.Take(msg)
		for _, d := range p.why {
			taken = d.Take(msg) || taken
		}
		if taken {
			p.read++
		}
		return nil
	}
	if p.since.IsZero() {
		p.since = c.Clock
	}
	p.names.Learn(c.View.Nodes)
	p.rows.Table.Settle(c.Clock)
	return p.ask(c, p.kube.PodsPace())
}

// ask requests the pods from Kubernetes and, from visible nodes, why pods wait.
func (p *Pods) ask(c pages.Context, every time.Duration) tea.Cmd {
	cmds := []tea.Cmd{p.kube.Ask(c, watch.WantClusterPods, every, watch.Query{})}
	asked := map[string]bool{}
	for _, r := range p.rows.Table.Visible() {
		n := c.View.Node(r.Node)
		if r.State != document.PodWaiting || n == nil || pages.Upstream(n) || n.State != document.StateLive || asked[r.Node] {
			continue
		}
		d := p.why[r.Node]
		if d == nil {
			if len(p.why) >= whyMost {
				clear(p.why)
			}
			made := pages.NewDocuments("pods", r.Node, "why")
			d, p.why[r.Node] = &made, &made
		}
		asked[r.Node] = true
		cmds = append(cmds, d.Ask(c, watch.WantFailures|watch.WantPlan, min(every, 15*time.Second), watch.Query{}))
	}
	return tea.Batch(cmds...)
}

// Gather implements pages.Gatherer.
func (p *Pods) Gather(c pages.Context) tea.Cmd {
	if p.read == 0 && c.Clock.Sub(p.since) < patience {
		return nil
	}
	why := map[string]inventory.PodWhy{}
	for node, d := range p.why {
		if of, ok := inventory.WhyOf(d.Last); ok {
			why[node] = of
		}
	}
	f := inventory.Pods{View: c.View, Kube: p.kube.Last.ClusterPods, Now: c.Now, Differ: p.sums.differ, Why: why}
	return p.rows.Gather(c, stamp{View: c.View.Generation, Other: p.read}, func(pick *components.Picker[*inventory.Pod]) any {
		s := podSums{unread: f.View.Unread(), nodes: len(f.View.Nodes)}
		s.differ = f.Join(func(rows []*inventory.Pod) {
			pick.Add(rows...)
			s.pods += len(rows)
			for _, r := range rows {
				if r.State == document.PodWaiting {
					s.without++
				}
			}
		})
		return s
	})
}

func (p *Pods) do(c pages.Context, action string) tea.Cmd {
	switch action {
	case keymap.In:
		return p.open()
	case keymap.Refresh:
		return p.ask(c, 0)
	}
	p.rows.Table.Do(action, c.Clock)
	return nil
}

// At implements pages.Pointing.
func (p *Pods) At(pages.Context) (pages.Object, bool) {
	r, ok := p.rows.Table.Row()
	if !ok || r.Node == "" {
		return pages.Object{}, false
	}
	return pages.Object{Node: r.Node, Pod: r.ID, ENI: r.ENIID, IP: r.Address}, true
}

func (p *Pods) open() tea.Cmd {
	r, ok := p.rows.Table.Row()
	if !ok {
		return nil
	}
	o := pages.Open{Screen: "pod", Node: r.Node}
	if r.Name != "" {
		o.Pod = r.Namespace + "/" + r.Name
	} else {
		o.IP = r.Address
	}
	return pages.Go(o)
}

// Lines implements pages.Page.
func (p *Pods) Lines(c pages.Context) []string {
	sum := []draw.Span{{Role: draw.Text, Text: human.Plural(p.sums.pods, "pod", "pods")}}
	if p.sums.without > 0 {
		sum = append(sum, draw.Span{Role: draw.Bad, Text: show.Count(p.sums.without) + " without an address"})
	}
	return p.rows.Lines(c, sum, p.notes()...)
}

// notes returns what is missing from the list.
func (p *Pods) notes() (out []string) {
	e, failed := p.kube.Error[watch.WantClusterPods]
	k := p.kube.Last.ClusterPods
	switch {
	case failed && e.Reason == introspect.ReasonForbidden:
		out = append(out, "missing permission: list pods. Only pods with an address are listed")
	case failed && k == nil:
		out = append(out, "only pods with an address are listed: "+strings.TrimSuffix(pages.Reason(e), "."))
	case failed:
		out = append(out, "pods without an address are those of the last list: "+strings.TrimSuffix(pages.Reason(e), "."))
	case k != nil && k.WithoutOnly:
		out = append(out, "many pods: those of the host network and those with a branch ENI are left out")
	case k != nil && k.Nodes != nil && p.sums.unread > 0 && p.sums.nodes-len(k.Nodes) == p.sums.unread: // the same, most likely
		return append(out, partOf(p.sums.unread, p.sums.nodes, "nodes")+" not read: pods and addresses there are missing")
	case k != nil && k.Nodes != nil && len(k.Nodes) < p.sums.nodes:
		out = append(out, "pods without an address: data from "+partOf(len(k.Nodes), p.sums.nodes, "nodes"))
	}
	if p.sums.unread > 0 {
		out = append(out, "addresses of "+partOf(p.sums.unread, p.sums.nodes, "nodes")+" have not been read")
	}
	return out
}
