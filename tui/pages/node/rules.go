package node

import (
	"maps"
	"slices"
	"strings"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// figure right-aligns a number in its column.
func figure(text string) string { return strings.Repeat(" ", max(9-len(text), 0)) + text }

// rules writes the max-pods that the published rules yield with the node's settings, one row
// per value, and marks kubelet's value.
func rules(sheet *draw.Sheet, n *store.Node) {
	byValue := map[int][]string{}
	var none []string
	for _, r := range fleet.MaxPodsRules(n.NodeIPAM) {
		if r.MaxPods == nil {
			none = append(none, r.Name)
		} else {
			byValue[*r.MaxPods] = append(byValue[*r.MaxPods], r.Name)
		}
	}
	if len(byValue) == 0 {
		return
	}
	sheet.Head("MAX-PODS BY PUBLISHED RULE", "")
	set := plainMaxPods(n)
	for _, v := range slices.Sorted(maps.Keys(byValue)) {
		row := []draw.Span{draw.T(draw.Faint, strings.Join(byValue[v], ", "))}
		if v == set {
			row = slices.Insert(row, 0, draw.T(draw.Good, "kubelet's value: "))
		}
		sheet.Row(figure(show.Pods(&v)), 11, row...)
	}
	if len(none) > 0 {
		sheet.Row(figure(show.Unknown), 11, draw.T(draw.Faint, strings.Join(none, ", ")))
	}
	if _, published := byValue[set]; set > 0 && !published {
		sheet.Row(figure(show.Pods(&set)), 11, draw.T(draw.Warn, "kubelet's value; matches no published rule"))
	}
}
