package pod

import (
	"fmt"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// Wiring writes labelled values with what the kernel has for an address of a pod, as iproute2
// prints it, and how that differs from the expected state. If the kernel was not read, it
// writes what is expected, if the daemon reports that.
func Wiring(i *introspect.PodInterface, field func(label string, spans ...draw.Span)) {
	switch {
	case i.Differences == nil:
	case len(i.Differences) == 0:
		field("state", draw.T(draw.Good, "as expected"))
	default:
		field("state", draw.T(draw.Bad, "not as expected: "+human.Plural(len(i.Differences), "difference", "differences")))
	}
	list(field, "differs", "", i.Differences, func(d string) []draw.Span { return []draw.Span{draw.T(draw.Text, d)} })
	if i.Problem != "" {
		field("not read", draw.T(draw.Warn, i.Problem))
	}
	link := show.OrUnknown(i.HostLink)
	k := i.Observed
	switch {
	case k == nil && i.HostLink == "":
		return
	case k == nil:
		table := netnames.MainTable
		if i.RouteTable != nil {
			table = *i.RouteTable
		}
		field("expected", draw.T(draw.Text, "link "+link))
		for _, r := range rules.PodRules(i.Address, table) {
			field("", draw.T(draw.Text, "rule "+r.String()))
		}
		return
	case k.Link == nil:
		field("link", draw.T(draw.Bad, "missing: "+link))
	default:
		role, up := draw.Text, "up"
		if k.Link.Name != i.HostLink && i.HostLink != "" {
			role = draw.Bad
		}
		if !k.Link.Up {
			up = "DOWN"
		} else if !k.Link.Running {
			up = "up, the pod's end is down"
		}
		field("link", draw.T(role, k.Link.Name),
			draw.T(draw.Faint, fmt.Sprintf("  index %d  %s  %s  mtu %d  %s", k.Link.Index, show.OrUnknown(k.Link.Kind), k.Link.MAC, k.Link.MTU, up)))
	}
	list(field, "rules", "none for the address", k.Rules, func(r introspect.PodRule) []draw.Span {
		return []draw.Span{draw.T(draw.Text, netstate.Rule{Priority: r.Priority, From: r.From, To: r.To, Table: r.Table}.String())}
	})
	list(field, "routes", "none to the address in main", k.Routes, route)
	list(field, "tables", "", k.Tables, route)
	list(field, "neighbours", "", k.Neighbours, func(n introspect.PodNeighbour) []draw.Span {
		return []draw.Span{
			draw.T(draw.Text, n.Address.String()+" dev "+n.Link+" lladdr "+show.OrUnknown(n.MAC)),
			draw.T(draw.Faint, " "+n.State),
		}
	})
}

// list writes values, the first with the label, or that there are none.
func list[T any](field func(string, ...draw.Span), label, none string, values []T, spans func(T) []draw.Span) {
	for _, v := range values {
		field(label, spans(v)...)
		label = ""
	}
	if len(values) == 0 && none != "" {
		field(label, draw.T(draw.Warn, none))
	}
}

func route(r introspect.PodRoute) []draw.Span {
	return []draw.Span{draw.T(draw.Text, netstate.Route{Dst: r.To, Gateway: r.Gateway, Table: r.Table}.Over(r.Link))}
}
