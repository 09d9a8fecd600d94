package lists

import (
	"strconv"

	"cnictl/capacity/limits"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// Lines implements pages.Page.
func (m *Trunks) Lines(c pages.Context) []string {
	s := c.Style()
	shown, _ := m.table.Found()
	m.frame.Need = []int{max(shown, 1) + 1}
	note := pages.Age(m.docs.Read[watch.WantPods], c.Now, 3*pages.Pace(c, nil))
	return m.frame.Draw(s, c.Width, c.Height, []string{m.header(s, c.Width)}, []components.Pane{
		{Title: "Nodes with trunks", Weight: 3, Least: 3, Lines: func(s draw.Style, w, h int) []string {
			return pages.Table(c, s, m.table, w, h)
		}},
		{Title: of("Branch ENIs", m.names.Short(m.docs.Node)), Note: note, Weight: 2, Least: 3, Lines: func(s draw.Style, w, h int) []string {
			sheet := draw.NewSheet(s, w)
			m.pods(c, sheet)
			return m.scroll.Window(sheet, h)
		}},
	})
}

// of adds the node's name to a pane's title, if there is one.
func of(title, node string) string {
	if node == "" {
		return title
	}
	return title + " of " + node
}

func (m *Trunks) header(s draw.Style, width int) string {
	sum := sumTrunks(m.table.All())
	l := draw.NewLine(s, width)
	l.Add(draw.Text, human.Plural(sum.Attached, "trunk", "trunks")).Gap(2)
	if len(m.table.All()) == 0 {
		return l.String()
	}
	atLeast := ""
	if sum.Unknown > 0 {
		atLeast = s.Pick("≥", ">=")
	}
	l.Add(draw.Text, "branches "+atLeast+strconv.Itoa(sum.Used)+"/"+strconv.Itoa(sum.Limit)).Gap(2)
	for _, part := range []struct {
		n    int
		word string
		role draw.Role
	}{
		{sum.Full, "full", draw.Bad}, {sum.Waiting, "waiting", draw.Warn}, {sum.Pending, "pending", draw.Warn},
		{sum.Unsupported, "without trunk support", draw.Warn}, {sum.NotReported, "not reported", draw.Faint},
	} {
		if part.n > 0 {
			l.Add(part.role, strconv.Itoa(part.n)+" "+part.word).Gap(2)
		}
	}
	return l.String()
}

// pods writes the branch ENIs of the node under the cursor.
func (m *Trunks) pods(c pages.Context, sheet *draw.Sheet) {
	r, ok := m.table.Row()
	if !ok {
		sheet.Add(draw.T(draw.Faint, "No node selected."))
		return
	}
	explainTrunk(sheet, r)
	n := c.View.Node(r.Node)
	if !m.docs.Has(watch.WantPods) {
		sheet.Head("PODS", "")
		sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, watch.WantPods, n, "The pods")))
		return
	}
	if e, failed := m.docs.Error[watch.WantPods]; failed {
		sheet.Add(draw.T(draw.Stale, "Refresh failed: "+pages.Reason(e)))
	}
	with := inventory.WithBranchPods(r.TrunkItem, m.docs.Last.Pods, r.IPv6)
	sheet.Head("WAITING FOR A BRANCH ENI", strconv.Itoa(*with.Waiting))
	for _, p := range with.Pods[:*with.Waiting] {
		sheet.Item(pages.Sign(sheet.Style(), document.SeverityWarning), draw.T(draw.Text, pages.PodName(p.Namespace, p.Name)),
			draw.T(draw.Faint, "  "+p.Phase+since(p, c)+"  "+inventory.FindingOf(inventory.PendingBranch)),
			draw.T(draw.Warn, "  "+p.Reason))
	}
	if *with.Waiting == 0 {
		sheet.Add(draw.T(draw.Faint, "No pods on this node. Unschedulable pods are not shown."))
	}
	branches := with.Pods[*with.Waiting:]
	sheet.Head("WITH A BRANCH ENI", strconv.Itoa(len(branches)))
	for _, p := range branches {
		if p.VLAN == nil {
			sheet.Item(draw.T(draw.Bad, "!"), draw.T(draw.Text, pages.PodName(p.Namespace, p.Name)), draw.T(draw.Bad, "  "+p.Reason))
			continue
		}
		sheet.Row("vlan "+strconv.Itoa(*p.VLAN), 9, draw.T(draw.Text, pages.PodName(p.Namespace, p.Name)),
			draw.T(draw.Faint, "  "+p.Address+"  "+show.OrUnknown(p.ENIID)))
	}
	cooling(sheet, with.Cooling)
}

// cooling writes how many branch ENIs have no pod. The controller deletes them some time
// after the pod, without notice.
func cooling(sheet *draw.Sheet, n *int) {
	sheet.Head("COOLING", "")
	switch {
	case n == nil:
		sheet.Add(draw.T(draw.Faint, "The node does not report how many branch ENIs are in use."))
	case *n > 0:
		text := human.Plural(*n, "branch ENI belongs to a deleted pod, or to one", "branch ENIs belong to deleted pods, or to ones")
		sheet.Add(draw.T(draw.Text, text+" not annotated yet."))
	default:
		sheet.Add(draw.T(draw.Faint, "None. The controller keeps the branch ENI of a deleted pod for 60 s (branch-eni-cooldown) without reporting it."))
	}
}

func since(p document.BranchPod, c pages.Context) string {
	if p.Since == nil {
		return ""
	}
	return " " + show.Since(p.Since, c.Now)
}

// explainTrunk explains the node's state.
func explainTrunk(sheet *draw.Sheet, r *trunk) {
	text := ""
	switch r.State {
	case document.TrunkAttached:
		sheet.Field("trunk", draw.T(draw.Text, r.ENIID))
	case document.TrunkPending:
		text = "ENABLE_POD_ENI is on; the VPC resource controller has not attached a trunk yet. It cannot if all ENI slots are taken: replace the node."
	case document.TrunkUnsupported:
		text = "ENABLE_POD_ENI is on, but " + r.typeName() + " does not support trunks: pods that need a branch ENI are not scheduled here."
	case document.TrunkOff:
		text = "The node has a trunk or branch capacity, but ENABLE_POD_ENI is off."
	case document.TrunkNotReported:
		text = "The Node object has capacity of vpc.amazonaws.com/pod-eni; the daemon does not report a trunk."
	}
	if text != "" {
		sheet.Field(tables.TrunkState(r.State), draw.T(draw.Text, text))
	}
	if i, ok := limits.Lookup(r.InstanceType); ok {
		has := human.Plural(i.BranchENIs, "branch ENI", "branch ENIs") + ", " + human.Plural(i.MaxENIs, "ENI slot", "ENI slots")
		sheet.Field("type", draw.T(draw.Text, r.InstanceType+": "+has))
	}
}

func (r *trunk) typeName() string {
	if r.InstanceType == "" {
		return "the instance type"
	}
	return r.InstanceType
}
