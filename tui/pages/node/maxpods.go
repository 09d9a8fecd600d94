package node

import (
	"cmp"
	"strconv"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/components/prose"
	"cnictl/tui/show"
	"cnictl/tui/theme"
)

// plainMaxPods returns kubelet's max-pods, 0 if unknown.
func plainMaxPods(n *store.Node) int {
	if v := n.MaxPods(); v != nil {
		return *v
	}
	return 0
}

// maxPods writes how max-pods is calculated, and what the published rules yield.
func maxPods(sheet *prose.Sheet, n *store.Node) {
	terms(sheet, n)
	rules(sheet, n)
	if sheet.Len() == 0 {
		sheet.Add(prose.T(theme.Faint, "max-pods: not reported."))
	}
}

// terms writes max-pods with the terms of its calculation.
func terms(sheet *prose.Sheet, n *store.Node) {
	m := n.Summary.MaxPods
	if m == nil {
		if v := plainMaxPods(n); v > 0 {
			sheet.Head("MAX-PODS", "")
			sheet.Add(prose.T(theme.Text, strconv.Itoa(v)+" from the Node object; "), prose.T(theme.Faint, "the daemon reports no details."))
		}
		return
	}
	role, words := theme.Faint, "unknown instance type"
	switch m.Verdict {
	case introspect.MaxPodsOK:
		role, words = theme.Good, "enough addresses"
	case introspect.MaxPodsOver:
		role, words = theme.Warn, "more pods can be scheduled than there are addresses"
	case introspect.MaxPodsUnder:
		role, words = theme.Info, "some addresses can never be used"
	}
	sheet.Head("MAX-PODS", "")
	source := ""
	if m.Source != "" {
		source = " (" + m.Source + ")"
	}
	sheet.Add(prose.T(theme.Text, show.Int(m.Value)+source+"  "), prose.T(role, show.OrUnknown(m.Verdict)), prose.T(theme.Faint, ": "+words))
	if m.AtRisk > 0 {
		sheet.Add(prose.T(theme.Warn, "at risk"), prose.T(theme.Faint, ": "+show.Plural(m.AtRisk, "pod", "pods")+" without a branch ENI can be scheduled beyond the addresses"))
	}
	capacity := []prose.Span{prose.T(theme.Text, show.Pods(m.IPCapacity)), prose.T(theme.Faint, " by addresses, ")}
	if m.IPCapacity == nil || m.TotalCapacity == nil || *m.IPCapacity != *m.TotalCapacity {
		capacity = append(capacity, prose.T(theme.Text, show.Pods(m.TotalCapacity)), prose.T(theme.Faint, " with branch ENIs, "))
	}
	sheet.Add(append(capacity, prose.T(theme.Text, show.Pods(m.Recommended)), prose.T(theme.Faint, " recommended"))...)
	for _, t := range m.Terms {
		name := cmp.Or(show.Term(t.Name), t.Name)
		sheet.Row(figure(show.Pods(&t.Value)), 11, prose.T(theme.Faint, name))
	}
}
