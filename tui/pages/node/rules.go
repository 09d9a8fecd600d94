package node

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/components/prose"
	"cnictl/tui/theme"
)

// figure is a number in the column of them.
func figure(text string) string { return strings.Repeat(" ", max(9-len(text), 0)) + text }

// rules writes the max-pods that the published rules give, those of one value together.
func rules(sheet *prose.Sheet, n *store.Node, _ time.Time) {
	all := fleet.MaxPodsRules(n.NodeIPAM)
	if len(all) == 0 {
		return
	}
	names := map[int][]string{}
	var values []int
	var none []string
	for _, r := range all {
		if r.MaxPods == nil {
			none = append(none, r.Name)
			continue
		}
		if names[*r.MaxPods] == nil {
			values = append(values, *r.MaxPods)
		}
		names[*r.MaxPods] = append(names[*r.MaxPods], r.Name)
	}
	slices.Sort(values)
	sheet.Head("MAX-PODS BY PUBLISHED RULES", "with this node's settings")
	set := plainMaxPods(n)
	said := false
	for _, v := range values {
		spans := []prose.Span{prose.T(theme.Faint, strings.Join(names[v], ", "))}
		if v == set {
			said = true
			spans = append(spans, prose.T(theme.Good, "  = kubelet setting"))
		}
		sheet.Row(figure(show.Pods(&v)), 11, spans...)
	}
	if len(none) > 0 {
		sheet.Row(figure(show.Unknown), 11, prose.T(theme.Faint, strings.Join(none, ", ")))
	}
	if set > 0 && !said {
		sheet.Add(prose.T(theme.Warn, "No rule gives "+strconv.Itoa(set)+", which kubelet has."))
	}
}
