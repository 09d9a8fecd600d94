package trunks

import (
	"strconv"

	"cnictl/capacity/limits"
	"cnictl/daemon/cluster"
	"cnictl/daemon/fleet/show"
	"cnictl/tui/components"
	"cnictl/tui/pages"
	"cnictl/tui/pages/parts"
	"cnictl/tui/source"
	"cnictl/tui/theme"
)

// Lines draws the screen.
func (m *Model) Lines(c pages.Context) []string {
	s := c.Style()
	shown, _ := m.table.Found()
	m.frame.Need = []int{max(shown, 1) + 1}
	note := parts.Age(m.docs.Read[source.WantPods], c.Now, 3*parts.Pace(c, nil))
	return m.frame.Draw(s, c.Width, c.Height, []string{m.header(s, c.Width)}, []components.Pane{
		{Title: "Nodes with trunks", Weight: 3, Least: 3, Lines: func(w, h int) []string { return parts.Table(c, m.table, w, h) }},
		{Title: of("Branch ENIs", m.docs.Node), Note: note, Weight: 2, Least: 3, Lines: func(w, h int) []string {
			sheet := parts.NewSheet(s, w)
			m.pods(c, sheet)
			return m.scroll.Window(sheet, h)
		}},
	})
}

// of says of which node a pane is, once there is one.
func of(title, node string) string {
	if node == "" {
		return title
	}
	return title + " of " + show.Safe(node)
}

func (m *Model) header(s components.Style, width int) string {
	sum := sumOf(m.table.Rows())
	l := components.NewLine(s, width)
	l.Add(theme.Text, show.Plural(sum.Attached, "trunk", "trunks")).Gap(2)
	if len(m.table.Rows()) == 0 {
		return l.String()
	}
	atLeast := ""
	if sum.Unknown > 0 {
		atLeast = s.Pick("≥", ">=")
	}
	l.Add(theme.Text, "branches "+atLeast+strconv.Itoa(sum.Used)+"/"+strconv.Itoa(sum.Limit)).Gap(2)
	for _, part := range []struct {
		n    int
		word string
		role theme.Role
	}{
		{sum.Full, "full", theme.Bad}, {sum.Awaited, "awaited", theme.Warn},
		{sum.Unsupported, "without trunk support", theme.Warn}, {sum.Untold, "not told", theme.Faint},
	} {
		if part.n > 0 {
			l.Add(part.role, strconv.Itoa(part.n)+" "+part.word).Gap(2)
		}
	}
	return l.String()
}

// pods writes what is known of the branch ENIs of the node under the cursor.
func (m *Model) pods(c pages.Context, sheet *parts.Sheet) {
	r, ok := m.table.Row()
	if !ok {
		sheet.Add(parts.T(theme.Faint, "No node is chosen."))
		return
	}
	state(sheet, r)
	n := c.View.Node(r.Node)
	if !m.docs.Has(source.WantPods) {
		sheet.Head("PODS", "")
		sheet.Add(parts.T(theme.Faint, parts.Missing(c, &m.docs, source.WantPods, n, "The pods")))
		return
	}
	if e, failed := m.docs.Error[source.WantPods]; failed {
		sheet.Add(parts.T(theme.Stale, "Not read again: "+parts.Reason(e)))
	}
	family := ""
	if n != nil && n.Summary != nil {
		family = n.Summary.IPFamily
	}
	waiting, with := split(m.docs.Last.Pods)
	sheet.Head("WAITING FOR A BRANCH ENI", strconv.Itoa(len(waiting)))
	for _, p := range waiting {
		sheet.Item(parts.T(theme.Warn, "W"), parts.T(theme.Text, parts.PodName(p.Namespace, p.Name)), parts.T(theme.Faint, "  "+show.Safe(p.Phase)+since(p, c)),
			parts.T(theme.Warn, "  "+show.Safe(p.Reason)))
	}
	if len(waiting) == 0 {
		sheet.Add(parts.T(theme.Faint, "No pod on the node asks for vpc.amazonaws.com/pod-eni without having it. Pods that no node has room for are on none."))
	}
	sheet.Head("WITH A BRANCH ENI", strconv.Itoa(len(with)))
	for _, p := range with {
		b, err := cluster.ParseBranch(p.PodENI, family == "ipv6")
		if err != nil {
			sheet.Item(parts.T(theme.Bad, "!"), parts.T(theme.Text, parts.PodName(p.Namespace, p.Name)), parts.T(theme.Bad, "  "+show.Safe(err.Error())))
			continue
		}
		sheet.Row("vlan "+strconv.Itoa(b.VLAN), 9, parts.T(theme.Text, parts.PodName(p.Namespace, p.Name)),
			parts.T(theme.Faint, "  "+b.Address.String()+"  "+show.OrUnknown(show.Safe(b.ENI))))
	}
	cooling(sheet, r, len(with))
}

// cooling says what is known of branch ENIs without a pod: the controller deletes them
// some time after the pod, and tells nobody.
func cooling(sheet *parts.Sheet, r *row, with int) {
	sheet.Head("COOLING", "")
	if r.Used == nil {
		sheet.Add(parts.T(theme.Faint, "The node does not tell how many branch ENIs are in use."))
		return
	}
	if rest := *r.Used - with; rest > 0 {
		sheet.Add(parts.T(theme.Warn, strconv.Itoa(rest)), parts.T(theme.Text, " in use beyond the pods that show one: pods that have just gone, or whose annotation is on its way."))
		return
	}
	sheet.Add(parts.T(theme.Faint, "None seen. The controller keeps the branch ENI of a deleted pod for a while (60 s unless branch-eni-cooldown says otherwise) and does not tell of it."))
}

func since(p source.Pod, c pages.Context) string {
	if p.StartedAt == nil {
		return ""
	}
	return " " + show.Since(p.StartedAt, c.Now)
}

// split parts pods that wait for a branch ENI from those that have one.
func split(all []source.Pod) (waiting, with []source.Pod) {
	for _, p := range all {
		switch {
		case p.PodENI != "":
			with = append(with, p)
		case p.Wants && p.Phase != "Succeeded" && p.Phase != "Failed":
			waiting = append(waiting, p)
		}
	}
	return waiting, with
}

// state says what the node's state means.
func state(sheet *parts.Sheet, r *row) {
	text := ""
	switch r.State {
	case stateAttached:
		sheet.Field("trunk", parts.T(theme.Text, show.Safe(r.ENI)))
	case stateAwaited:
		text = "ENABLE_POD_ENI is on and the type can trunk; the VPC resource controller has not attached a trunk yet. With every slot taken it never can: recycle the node."
	case stateUnsupported:
		text = "ENABLE_POD_ENI is on, but " + typeOf(r) + " has no trunk support: pods that ask for a branch ENI are not placed here."
	case stateOff:
		text = "A trunk or branch capacity is there, but ENABLE_POD_ENI is off on the node."
	case stateUntold:
		text = "The Node object shows capacity of vpc.amazonaws.com/pod-eni; the daemon tells nothing of its trunk."
	}
	if text != "" {
		sheet.Field(r.State, parts.T(theme.Text, text))
	}
	if i, ok := limits.Lookup(r.Type); ok {
		sheet.Field("type", parts.T(theme.Text, show.Safe(r.Type)+": "+show.Plural(i.BranchENIs, "branch ENI", "branch ENIs")+", "+show.Plural(i.MaxENIs, "ENI slot", "ENI slots")))
	}
}

func typeOf(r *row) string {
	if r.Type == "" {
		return "the instance type"
	}
	return show.Safe(r.Type)
}
