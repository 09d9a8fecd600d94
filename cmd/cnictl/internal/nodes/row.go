package nodes

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
)

// unread stands in every cell of a node that could not be read.
const unread = "?"

// Row is a node in cells.
type Row struct {
	Assigned, Cooling, Free, Limit int // sums over cards for a bar; Cooling, Limit 0: not known

	Type, ENIs, Used, AssignedText, CoolingText, FreeText     string
	Warm, MaxPods, Status, Mode, Branch, Waiting, Version, Up string
	Instance, Source, Prefixes                                string
	Class, MaxPodsClass                                       paint.Class
}

// RowOf says a node in cells.
func RowOf(n introspect.NodeIPAM) Row {
	if n.Summary == nil {
		return silent(n)
	}
	s, node := *n.Summary, store.NewNode(n)
	r := Row{
		Type: store.TypeText(node), Instance: show.OrUnknown(s.InstanceID), Version: show.OrUnknown(n.DaemonVersion()),
		Warm: store.WarmTargets(s), Waiting: show.Int(s.WaitingADDs), Source: n.Source, Branch: store.Branches(s.Trunk), Up: show.Unknown,
		Mode: node.Modes(), Prefixes: show.Int(node.Prefixes), ENIs: show.Int(node.ENIs),
	}
	if n.SampledAt != nil {
		r.Up = show.Since(s.StartedAt, *n.SampledAt)
	}
	if node.ENILimit != nil {
		r.ENIs += "/" + strconv.Itoa(*node.ENILimit)
	}
	r.count(node)
	r.MaxPods, r.MaxPodsClass = maxPods(s.MaxPods)
	r.Status, r.Class = status(node)
	return r
}

// silent says a node that could not be read: what Kubernetes knows of it, and no more.
func silent(n introspect.NodeIPAM) Row {
	r := Row{
		Type: unread, ENIs: unread, Used: unread, AssignedText: unread, CoolingText: unread, FreeText: unread,
		Warm: unread, MaxPods: unread, Mode: unread, Branch: unread, Waiting: unread, Version: unread, Up: unread,
		Instance: unread, Source: unread, Prefixes: unread,
		Status: store.NewNode(n).Status(), Class: paint.Bad,
	}
	if n.Object == nil {
		return r
	}
	r.Type, r.Instance, r.Version = cmp.Or(n.Object.InstanceType, unread), cmp.Or(n.Object.InstanceID, unread), cmp.Or(n.DaemonVersion(), unread)
	if n.Object.MaxPods != nil {
		r.MaxPods = strconv.Itoa(*n.Object.MaxPods)
	}
	return r
}

// count says the addresses of the pool.
func (r *Row) count(n *store.Node) {
	r.Assigned, r.Free = n.Assigned, n.Free
	if n.Cooling != nil {
		r.Cooling = *n.Cooling
	}
	r.Used = show.Count(r.Assigned)
	if n.Limit != nil {
		for _, c := range n.Summary.Cards {
			if most, _ := fleet.Capacity(n.NodeIPAM, c); most != nil {
				r.Limit += *most
			}
		}
		r.Used += "/" + show.Count(r.Limit)
	}
	if len(n.Summary.Cards) == 0 {
		r.Used, r.AssignedText, r.CoolingText, r.FreeText = show.Unknown, show.Unknown, show.Unknown, show.Unknown
		return
	}
	r.AssignedText, r.CoolingText, r.FreeText = show.Count(r.Assigned), show.Int(n.Cooling), show.Count(r.Free)
}

func maxPods(m *introspect.MaxPods) (string, paint.Class) {
	if m == nil || m.Value == nil {
		return show.Unknown, paint.Plain
	}
	switch m.Verdict {
	case introspect.MaxPodsOver:
		return fmt.Sprintf("%d over", *m.Value), paint.Warn
	case "":
		return strconv.Itoa(*m.Value), paint.Plain
	}
	return fmt.Sprintf("%d %s", *m.Value, m.Verdict), paint.Plain
}

// status is the STATUS cell with its class.
func status(n *store.Node) (string, paint.Class) {
	switch n.Severity {
	case introspect.SeverityError:
		return n.Status(), paint.Bad
	case introspect.SeverityWarning:
		return n.Status(), paint.Warn
	case introspect.SeverityInfo:
	}
	if n.Well() {
		return n.Status(), paint.OK
	}
	return n.Status(), paint.Warn
}

// When tells the time of a problem: how long ago, since, or still. It is empty when
// it is not known.
func When(p introspect.Problem, now time.Time) string {
	before, age, after := "", show.Unknown, ""
	switch {
	case p.At != nil:
		age, after = show.Since(p.At, now), " ago"
	case p.Since != nil:
		before, age = "for ", show.Since(p.Since, now)
	case p.Until != nil:
		age, after = show.Until(p.Until, now), " more"
	}
	if age == show.Unknown {
		return ""
	}
	return before + age + after
}
