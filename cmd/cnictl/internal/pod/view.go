package pod

import (
	"fmt"
	"strconv"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/draw"
	screen "cnictl/tui/pages/pod"
	"cnictl/tui/show"
)

// lines formats a report.
func lines(f *cli.Factory, r document.PodReport) []string {
	v := view{r: r, Command: f.Name, Page: output.Page{Opts: output.TableOptions(f)}}
	return v.lines()
}

type view struct {
	r       document.PodReport
	Command string // how the user calls the tool
	output.Page
}

func (v *view) lines() []string {
	name := v.r.Pod.Namespace + "/" + v.r.Pod.Name
	v.Line(table.Cell{Text: "POD " + name, Class: paint.Head}, table.Cell{Text: "  "},
		table.Cell{Text: v.r.State, Class: stateClass(v.r.State)})
	v.Field("verdict", named(v.r.Verdict))
	if e, ok := catalogue.Lookup(v.r.Finding); ok {
		v.Cells("cause", table.Cell{Text: e.Code, Class: paint.Bad}, table.Cell{Text: "  " + e.Title + ": " + v.Command + " doctor pod " + name})
	}
	v.Field("node", show.OrUnknown(v.r.Node))
	if k := v.r.Kubernetes; k != nil {
		phase := show.OrUnknown(k.Phase)
		if k.StartedAt != nil {
			phase += ", started " + show.Since(k.StartedAt, v.r.SampledAt) + " ago"
		}
		v.Field("phase", phase)
		if k.Reason != "" {
			v.Field("reason", k.Reason)
		}
	}
	if v.r.Waiting != nil && *v.r.Waiting > 0 {
		v.Field("waiting", human.Plural(*v.r.Waiting, "ADD waiting", "ADDs waiting")+" on the node")
	}
	v.branch()
	v.Section("ADDRESSES", v.addresses())
	for _, i := range v.r.Interfaces {
		v.Title("WIRING OF " + i.Address.String())
		screen.Wiring(&i.PodInterface, func(label string, spans ...draw.Span) {
			cells := make([]table.Cell, len(spans))
			for i, s := range spans {
				cells[i] = table.Cell{Text: s.Text, Class: s.Role}
			}
			v.Cells(label, cells...)
		})
	}
	v.Section("BLOCKED: an ADD would fail now", v.blocked())
	v.Section("FAILED ADDS", v.failures())
	v.Section("TIMELINE", v.timeline())
	return v.Lines
}

// named puts the doctor's code for a cause in place of the daemon's.
func named(verdict string) string {
	const none = "it has no address: "
	if reason, found := strings.CutPrefix(verdict, none); found {
		return none + inventory.NamedReason(reason)
	}
	return verdict
}

func stateClass(state string) paint.Class {
	switch state {
	case document.PodHasAddress, document.PodBranch:
		return paint.OK
	case document.PodWaiting:
		return paint.Bad
	case document.PodUnknown:
		return paint.Warn
	}
	return paint.Dim
}

// branch formats the branch ENI. Its security groups are not in the annotation.
func (v *view) branch() {
	b := v.r.Branch
	if b == nil {
		return
	}
	v.Field("branch ENI", fmt.Sprintf("%s  VLAN %d  %s", show.OrUnknown(b.ENIID), b.VLAN, show.OrUnknown(b.MAC)))
	v.Field("  trunk", show.OrUnknown(b.TrunkENIID)+"  "+show.OrUnknown(b.Association))
	for _, a := range []struct{ address, subnet string }{{validText(b.IPv4), b.IPv4Subnet.String()},
		{validText(b.IPv6), b.IPv6Subnet.String()}} {
		if a.address != "" {
			v.Field("  address", a.address+" in "+a.subnet)
		}
	}
	groups := strings.Join(b.SecurityGroups, ", ")
	if b.SecurityGroups == nil {
		groups = "from the policies that select it: kubectl get securitygrouppolicies -n " + v.r.Pod.Namespace
	}
	v.Field("  groups", groups)
	if k := v.r.Kubernetes; k != nil && k.BranchReason != "" {
		v.Cells("  problem", table.Cell{Text: k.BranchReason, Class: paint.Bad})
	}
}

func (v *view) addresses() table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "ADDRESS"}, {Name: "OF", Drop: 3}, {Name: "ENI"}, {Name: "CARD", Right: true, Drop: 4}, {Name: "DEVICE", Right: true},
		{Name: "SUBNET", Free: true, Drop: 1},
		{Name: "TABLE", Right: true}, {Name: "FOR", Right: true}, {Name: "HOST LINK", Drop: 2},
	}}
	for _, i := range v.r.Interfaces {
		of := show.Unknown
		if i.CIDR.IsValid() && !i.CIDR.IsSingleIP() {
			of = i.CIDR.String()
		}
		t.Rows = append(t.Rows,
			table.Cells(i.Address.String(), of, show.OrUnknown(i.ENIID), show.Int(i.Card), show.Int(i.Device), show.OrUnknown(i.SubnetID),
				show.Int(i.RouteTable), show.Since(i.AssignedAt, v.r.SampledAt), show.OrUnknown(i.HostLink)))
	}
	return t
}

func (v *view) blocked() table.Table {
	t := table.Table{Columns: []table.Column{{Name: "CARD", Right: true}, {Name: "CAUSE"}, {Name: "MESSAGE", Free: true, Min: 20}}}
	if v.r.State != document.PodWaiting && v.r.State != document.PodUnknown {
		return t
	}
	for _, b := range v.r.Blocked {
		t.Rows = append(t.Rows, []table.Cell{{Text: strconv.Itoa(b.Card)}, {Text: catalogue.Named(b.Cause), Class: paint.Bad}, {Text: b.Message}})
	}
	return t
}

func (v *view) failures() table.Table {
	t := table.Table{Columns: []table.Column{{Name: "AGO", Right: true}, {Name: "CAUSE"}, {Name: "WAITED", Right: true},
		{Name: "RETRY", Drop: 1}, {Name: "DETAIL", Free: true, Min: 20}}}
	for _, f := range v.r.Failures {
		again := "no"
		if f.Transient {
			again = "may succeed"
		}
		t.Rows = append(t.Rows, []table.Cell{
			{Text: show.Since(&f.At, v.r.SampledAt)}, {Text: catalogue.Named(f.Cause), Class: paint.Bad},
			{Text: human.Milliseconds(f.WaitedMS)}, {Text: again}, {Text: f.Detail},
		})
	}
	return t
}

func (v *view) timeline() table.Table {
	t := table.Table{Columns: []table.Column{{Name: "AGO", Right: true}, {Name: "FROM", Drop: 1}, {Name: "WHAT"},
		{Name: "TIMES", Right: true, Drop: 2}, {Name: "MESSAGE", Free: true, Min: 20}}}
	for _, i := range v.r.Timeline {
		c := paint.Plain
		if i.Warning {
			c = paint.Warn
		}
		t.Rows = append(t.Rows, []table.Cell{{Text: show.Since(&i.At, v.r.SampledAt), Class: paint.Dim}, {Text: i.From, Class: paint.Dim},
			{Text: i.What, Class: c}, {Text: strconv.Itoa(i.Count)}, {Text: i.Message}})
	}
	return t
}
