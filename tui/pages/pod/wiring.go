package pod

import (
	"fmt"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
	"cnictl/tui/components/prose"
	"cnictl/tui/show"
	"cnictl/tui/theme"
)

// Wiring writes labelled values with what the kernel has for an address of a pod, as iproute2
// prints it, and how that differs from the expected state. If the kernel was not read, it
// writes what is expected, if the daemon reports that.
func Wiring(i *introspect.PodInterface, field func(label string, spans ...prose.Span)) {
	switch {
	case i.Differences == nil:
	case len(i.Differences) == 0:
		field("state", prose.T(theme.Good, "as expected"))
	default:
		field("state", prose.T(theme.Bad, "not as expected: "+show.Plural(len(i.Differences), "difference", "differences")))
	}
	list(field, "differs", "", i.Differences, func(d string) []prose.Span { return []prose.Span{prose.T(theme.Text, d)} })
	if i.Problem != "" {
		field("not read", prose.T(theme.Warn, i.Problem))
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
		field("expected", prose.T(theme.Text, "link "+link))
		for _, r := range rules.PodRules(i.Address, table) {
			field("", prose.T(theme.Text, "rule "+r.String()))
		}
		return
	case k.Link == nil:
		field("link", prose.T(theme.Bad, "missing: "+link))
	default:
		role, up := theme.Text, "up"
		if k.Link.Name != i.HostLink && i.HostLink != "" {
			role = theme.Bad
		}
		if !k.Link.Up {
			up = "DOWN"
		} else if !k.Link.Running {
			up = "up, the pod's end is down"
		}
		field("link", prose.T(role, k.Link.Name),
			prose.T(theme.Faint, fmt.Sprintf("  index %d  %s  %s  mtu %d  %s", k.Link.Index, show.OrUnknown(k.Link.Kind), k.Link.MAC, k.Link.MTU, up)))
	}
	list(field, "rules", "none for the address", k.Rules, func(r introspect.PodRule) []prose.Span {
		return []prose.Span{prose.T(theme.Text, netstate.Rule{Priority: r.Priority, From: r.From, To: r.To, Table: r.Table}.String())}
	})
	list(field, "routes", "none to the address in main", k.Routes, route)
	list(field, "tables", "", k.Tables, route)
	list(field, "neighbours", "", k.Neighbours, func(n introspect.PodNeighbour) []prose.Span {
		return []prose.Span{
			prose.T(theme.Text, n.Address.String()+" dev "+n.Link+" lladdr "+show.OrUnknown(n.MAC)),
			prose.T(theme.Faint, " "+n.State),
		}
	})
}

// list writes values, the first with the label, or that there are none.
func list[T any](field func(string, ...prose.Span), label, none string, values []T, spans func(T) []prose.Span) {
	for _, v := range values {
		field(label, spans(v)...)
		label = ""
	}
	if len(values) == 0 && none != "" {
		field(label, prose.T(theme.Warn, none))
	}
}

func route(r introspect.PodRoute) []prose.Span {
	return []prose.Span{prose.T(theme.Text, netstate.Route{Dst: r.To, Gateway: r.Gateway, Table: r.Table}.Over(r.Link))}
}
