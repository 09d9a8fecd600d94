package node

import (
	"cmp"
	"strconv"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// plainMaxPods returns kubelet's max-pods, 0 if unknown.
func plainMaxPods(n *store.Node) int {
	if v := n.MaxPods(); v != nil {
		return *v
	}
	return 0
}

// maxPods writes how max-pods is calculated, and what the published rules yield.
func maxPods(sheet *draw.Sheet, n *store.Node) {
	terms(sheet, n)
	rules(sheet, n)
	if sheet.Len() == 0 {
		sheet.Add(draw.T(draw.Faint, "max-pods: not reported."))
	}
}

// terms writes max-pods with the terms of its calculation.
func terms(sheet *draw.Sheet, n *store.Node) {
	m := n.Summary.MaxPods
	if m == nil {
		if v := plainMaxPods(n); v > 0 {
			sheet.Add(draw.T(draw.Text, strconv.Itoa(v)+" from the Node object; "), draw.T(draw.Faint, "the daemon reports no details."))
		}
		return
	}
	role, words := draw.Faint, "unknown instance type"
	switch m.Verdict {
	case introspect.MaxPodsOK:
		role, words = draw.Good, "enough addresses"
	case introspect.MaxPodsOver:
		role, words = draw.Warn, "more pods can be scheduled than there are addresses"
	case introspect.MaxPodsUnder:
		role, words = draw.Info, "some addresses can never be used"
	}
	source := ""
	if m.Source != "" {
		source = " (" + m.Source + ")"
	}
	sheet.Add(draw.T(draw.Text, show.Int(m.Value)+source+"  "), draw.T(role, show.OrUnknown(m.Verdict)), draw.T(draw.Faint, ": "+words))
	if m.AtRisk > 0 {
		sheet.Add(draw.T(draw.Warn, "at risk"),
			draw.T(draw.Faint, ": "+human.Plural(m.AtRisk, "pod", "pods")+" without a branch ENI can be scheduled beyond the addresses"))
	}
	capacity := []draw.Span{draw.T(draw.Text, show.Pods(m.IPCapacity)), draw.T(draw.Faint, " by addresses, ")}
	if m.IPCapacity == nil || m.TotalCapacity == nil || *m.IPCapacity != *m.TotalCapacity {
		capacity = append(capacity, draw.T(draw.Text, show.Pods(m.TotalCapacity)), draw.T(draw.Faint, " with branch ENIs, "))
	}
	sheet.Add(append(capacity, draw.T(draw.Text, show.Pods(m.Recommended)), draw.T(draw.Faint, " recommended"))...)
	for _, t := range m.Terms {
		name := cmp.Or(show.Term(t.Name), t.Name)
		sheet.Row(figure(show.Pods(&t.Value)), 11, draw.T(draw.Faint, name))
	}
}
