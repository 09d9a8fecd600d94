package pod

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// Lines implements pages.Page.
func (m *Model) Lines(c pages.Context) []string {
	s := c.Style()
	n := c.View.Node(m.docs.Node)
	at := places(m.docs.ENIs(c.View), m.ref, m.ip)
	pod := kube(m.docs.Last.Pods, m.ref, m.ip)
	fresh := 3 * pages.Pace(c, n)
	age := func(w watch.Want) string { return pages.Age(m.docs.Read[w], c.Now, fresh) }
	return m.frame.Draw(s, c.Width, c.Height, []string{m.header(s, c.Width, at, pod)}, []components.Pane{
		{Title: "Wiring", Note: age(watch.WantENIs), Weight: 3, Least: 4, Lines: func(s draw.Style, w, h int) []string {
			sheet := draw.NewSheet(s, w)
			m.addresses(c, n, sheet, at, pod)
			m.branch(c, n, sheet, pod)
			m.interfaces(c, n, sheet)
			return m.scroll[paneWiring].Window(sheet, h)
		}},
		{Title: "History", Note: age(watch.WantEvents), Weight: 2, Least: 3, Lines: func(s draw.Style, w, h int) []string {
			sheet := draw.NewSheet(s, w)
			m.timeline(c, n, sheet, at)
			return m.scroll[paneTimeline].Window(sheet, h)
		}},
	})
}

func (m *Model) header(s draw.Style, width int, at []place, pod *watch.Pod) string {
	l := draw.NewLine(s, width).Add(draw.Title, m.Title()).Gap(2)
	if m.docs.Node != "" {
		l.Add(draw.Faint, "on "+pages.Host(m.docs.Node)).Gap(2) // whole, it would cut off the reason
	}
	if len(at) > 0 && m.ref.Name != "" {
		l.Add(draw.Text, at[0].Address.Address.String()).Gap(2)
	}
	if pod != nil {
		role := draw.Good
		if pod.Phase != "Running" {
			role = draw.Warn
		}
		l.Add(role, pod.Phase).Gap(2)
		if pod.Reason != "" {
			l.Add(draw.Warn, pod.Reason)
		}
	}
	return l.String()
}

// addresses writes where each address comes from.
func (m *Model) addresses(c pages.Context, n *store.Node, sheet *draw.Sheet, at []place, pod *watch.Pod) {
	if pod != nil && pod.HostNetwork {
		sheet.Add(draw.T(draw.Info, "In the host's network: "), draw.T(draw.Text, "it uses the node's address, none from the pool."))
		return
	}
	if len(at) == 0 {
		switch {
		case m.docs.Node == "":
			m.notFound(c, sheet)
		case n != nil && n.Object != nil && m.ip.IsValid() && n.Object.InternalIP == m.ip.String():
			sheet.Add(draw.T(draw.Info, "The node's own address: "),
				draw.T(draw.Text, "that of the node itself and of its pods in the host's network."))
		case !m.docs.Has(watch.WantENIs):
			sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, watch.WantENIs, n, "The address")))
		case m.ref.Name != "":
			state, reason := m.reason(n, pod)
			if state == document.PodWaiting {
				sheet.Add(draw.T(draw.Bad, "Waiting for an IP address"))
			} else {
				sheet.Add(draw.T(draw.Warn, "The pool holds no address for this pod."))
			}
			m.why(sheet, inventory.NamedReason(reason))
			if pod != nil && pod.PodENI != "" {
				sheet.Add(draw.T(draw.Faint, "Its address is that of its branch ENI, below."))
			}
		default:
			sheet.Add(draw.T(draw.Warn, "No interface of "+m.docs.Node+" holds this address."))
		}
		return
	}
	for _, p := range at {
		sheet.Head(p.Address.Address.String(), stateOf(p, n, c.Now))
		sheet.Field("interface", draw.T(draw.Text, p.ENI.ID),
			draw.T(draw.Faint, "  card "+strconv.Itoa(p.ENI.Card)+" device "+strconv.Itoa(p.ENI.Device)+"  "+inventory.ENIKind(p.ENI)))
		if !p.Block.IsSingleIP() {
			sheet.Field("prefix", draw.T(draw.Text, p.Block.String()))
		}
		sheet.Field("subnet", draw.T(draw.Text, show.OrUnknown(p.ENI.SubnetID)))
		sheet.Field("route table", draw.T(draw.Text, tableText(p.ENI.RouteTable)))
		if name := pages.PodName(p.Address.PodNamespace, p.Address.PodName); name != "" && m.ref.Name == "" {
			sheet.Field("last pod", draw.T(draw.Text, name))
		}
	}
}

// why writes why the pod has no address, once, and the first thing to do about it.
func (m *Model) why(sheet *draw.Sheet, reason string) {
	e, ok := catalogue.Lookup(m.finding)
	text, same := strings.CutPrefix(reason, m.finding+": ")
	switch {
	case !ok:
		if reason != "" {
			sheet.Add(draw.T(draw.Text, reason))
		}
		return
	case !same || text == "":
		if text = e.Title; reason != "" && reason != e.Code {
			sheet.Add(draw.T(draw.Text, reason))
		}
	}
	sheet.Item(draw.T(draw.Bad, "!"), draw.T(draw.Bad, e.Code), draw.T(draw.Text, "  "+text))
	pages.Fix(sheet, e.Code)
}

// reason is the pod's state and why it has no address, as the list of pods shows it.
func (m *Model) reason(n *store.Node, pod *watch.Pod) (state, reason string) {
	if n == nil || pod == nil {
		return "", ""
	}
	why, _ := inventory.WhyOf(m.docs.Last)
	return inventory.PodReason(n, why, *pod)
}

// notFound describes a pod or an address that is on no known node.
func (m *Model) notFound(c pages.Context, sheet *draw.Sheet) {
	if p := m.listed(); p != nil {
		sheet.Add(draw.T(draw.Warn, "Not scheduled to a node yet."), draw.T(draw.Text, " "+p.Reason))
		return
	}
	if m.ref.Name == "" && !m.ip.IsValid() {
		sheet.Add(draw.T(draw.Warn, "No pod or address given."))
		return
	}
	has, none := "No node read so far has an address of this pod", "Kubernetes has no such pod."
	if m.ref.Name == "" {
		has, none = "No node read so far holds "+m.ip.String(), "No pod in Kubernetes has it."
	}
	nodes, unread := len(c.View.Nodes), c.View.Unread()
	if unread > 0 {
		has += "; the addresses of " + strconv.Itoa(unread) + " of " + human.Plural(nodes, "node", "nodes") + " have not been read yet"
	}
	sheet.Add(draw.T(draw.Warn, has+"."))
	e, failed := m.find.Error[watch.WantClusterPods]
	switch {
	case failed && e.Reason == introspect.ReasonForbidden:
		sheet.Add(draw.T(draw.Warn, "Kubernetes: missing permission: list pods."))
	case failed:
		sheet.Add(draw.T(draw.Faint, "Kubernetes: "+pages.Reason(e)))
	case m.find.Has(watch.WantClusterPods):
		sheet.Add(draw.T(draw.Text, none))
	default:
		sheet.Add(draw.T(draw.Faint, "Asking Kubernetes ..."))
	}
	for _, u := range c.View.Subnets {
		if m.ref.Name == "" && u.Range.IsValid() && u.Range.Contains(m.ip) {
			sheet.Field("subnet", draw.T(draw.Text, u.ID), draw.T(draw.Faint, "  "+u.Range.String()+"  "+u.Zone))
		}
	}
	if unread > 0 {
		sheet.Add(draw.T(draw.Faint, "The search goes on as nodes are read."))
	}
}

// stateOf returns an address's state, and since when.
func stateOf(p place, n *store.Node, now time.Time) string {
	a := p.Address
	switch a.State {
	case introspect.AddressAssigned:
		return "assigned for " + show.Since(a.AssignedAt, now)
	case introspect.AddressCooling:
		text := "cooling for " + show.Since(a.UnassignedAt, now)
		if n == nil {
			return text
		}
		if cooldown, ok := fleet.Cooldown(n.Summary); ok && a.UnassignedAt != nil {
			until := a.UnassignedAt.Add(cooldown)
			text += ", free in " + show.Until(&until, now)
		}
		return text
	}
	if a.UnassignedAt != nil {
		return "free, its last pod left " + show.Since(a.UnassignedAt, now) + " ago"
	}
	return "free, no pod had it since the daemon started"
}

func tableText(table *int) string {
	if table == nil {
		return "not reported"
	}
	if netnames.IsMain(*table) {
		return strconv.Itoa(netnames.MainTable) + " (main)"
	}
	return strconv.Itoa(*table)
}

// branch writes the branch ENI of a pod that has or wants one.
func (m *Model) branch(c pages.Context, n *store.Node, sheet *draw.Sheet, pod *watch.Pod) {
	if pod == nil || !pod.Wants && pod.PodENI == "" {
		return
	}
	pending := inventory.FindingOf(inventory.PendingBranch)
	if pod.PodENI == "" && m.finding == pending {
		return // as said above
	}
	sheet.Head("BRANCH ENI", "vpc.amazonaws.com/pod-eni")
	if pod.PodENI == "" {
		sheet.Add(draw.T(draw.Warn, pending+": "),
			draw.T(draw.Text, "the VPC resource controller has not written the pod's annotation yet."))
		return
	}
	family := ""
	if n != nil && n.Summary != nil {
		family = n.Summary.IPFamily
	}
	b, err := branch(pod.PodENI, family)
	if err != nil {
		sheet.Add(draw.T(draw.Bad, catalogue.Named(string(cause.BranchInvalid))+": "), draw.T(draw.Text, err.Error()))
		sheet.Field("annotation", draw.T(draw.Faint, pod.PodENI))
		return
	}
	sheet.Field("interface", draw.T(draw.Text, show.OrUnknown(b.ENI)))
	sheet.Field("address", draw.T(draw.Text, b.Address.String()), draw.T(draw.Faint, "  gateway "+b.Gateway.String()))
	table, _ := netnames.BranchTable(b.VLAN)
	sheet.Field("VLAN", draw.T(draw.Text, strconv.Itoa(b.VLAN)),
		draw.T(draw.Faint, fmt.Sprintf("  route table %d by rule %d", table, netnames.RuleBranch)))
	sheet.Field("MAC", draw.T(draw.Text, b.MAC))
	sheet.Field("trunk", draw.T(draw.Text, trunkOf(n)))
	sheet.Field("groups", draw.T(draw.Faint, "those of the SecurityGroupPolicies that matched the pod when it was created; the annotation does not name them"))
}

func trunkOf(n *store.Node) string {
	if n == nil || n.Summary == nil || n.Summary.Trunk == nil || n.Summary.Trunk.ENIID == "" {
		return show.Unknown
	}
	return n.Summary.Trunk.ENIID
}

// interfaces writes how the pod's network should be, and what the kernel has.
func (m *Model) interfaces(c pages.Context, n *store.Node, sheet *draw.Sheet) {
	if m.ref.Name == "" || m.docs.Node == "" {
		return
	}
	doc := m.docs.Last.Pod
	if doc == nil {
		sheet.Head("IN THE KERNEL", "")
		if e, failed := m.docs.Error[watch.WantPod]; failed && e.Reason == introspect.ReasonNotFound {
			sheet.Add(draw.T(draw.Faint, "Nothing, because the pod has no address yet."))
			return
		}
		sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, watch.WantPod, n, "Kernel state")))
		return
	}
	for i := range doc.Interfaces {
		sheet.Head("IN THE KERNEL", doc.Interfaces[i].Address.String())
		Wiring(&doc.Interfaces[i], sheet.Field)
	}
	if len(doc.Interfaces) == 0 {
		sheet.Head("IN THE KERNEL", "")
		sheet.Add(draw.T(draw.Faint, "No address assigned to this pod."))
	}
}

// timeline writes what happened, newest first.
func (m *Model) timeline(c pages.Context, n *store.Node, sheet *draw.Sheet, at []place) {
	if m.docs.Node == "" {
		sheet.Add(draw.T(draw.Faint, "Its node is not known yet."))
		return
	}
	if !m.docs.Has(watch.WantEvents) {
		sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, watch.WantEvents, n, "The history")))
		for _, p := range at {
			said(sheet, p, c.Now)
		}
		return
	}
	changes, failures := history(m.events.Items, m.docs.Last.Failures, m.ref, m.ip, at)
	changes = slices.DeleteFunc(changes, func(e introspect.Event) bool { // the failure says more
		return e.Kind == introspect.EventADDFailed &&
			slices.ContainsFunc(failures, func(f introspect.Failure) bool { return f.At.Sub(e.At).Abs() <= time.Second })
	})
	for _, f := range failures {
		sheet.Row(draw.Clock(f.At, c.Now), 9, draw.T(draw.Bad, "no address: "+catalogue.Named(f.Cause)), draw.T(draw.Text, "  "+f.Detail),
			draw.T(draw.Faint, "  waited "+human.Milliseconds(f.WaitedMS)+retries(f.Transient)))
	}
	for _, e := range changes {
		sheet.Row(draw.Clock(e.At, c.Now), 9, draw.T(pages.EventRole(e.Kind), string(e.Kind)), draw.T(draw.Faint, "  "+inventory.EventLine(e)))
	}
	if len(changes)+len(failures) == 0 {
		sheet.Add(draw.T(draw.Faint,
			"Not in the daemon's history, which holds the last "+strconv.Itoa(introspect.MaxEvents)+" changes of the node."))
		for _, p := range at {
			said(sheet, p, c.Now)
		}
	}
}

// said writes when the address was assigned and released.
func said(sheet *draw.Sheet, p place, now time.Time) {
	if p.Address.UnassignedAt != nil {
		sheet.Row(draw.Clock(*p.Address.UnassignedAt, now), 9, draw.T(draw.Text, "released by its last pod"))
	}
	if p.Address.AssignedAt != nil {
		pod := show.OrUnknown(pages.PodName(p.Address.PodNamespace, p.Address.PodName))
		sheet.Row(draw.Clock(*p.Address.AssignedAt, now), 9, draw.T(draw.Text, "assigned to "+pod))
	}
}

func retries(transient bool) string {
	if transient {
		return ", kubelet's next retry may succeed"
	}
	return ""
}
