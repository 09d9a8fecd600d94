package inventory

import (
	"cmp"
	"slices"
	"strings"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/doctor/causes/catalogue"
)

// NodeReport is what one node reports.
type NodeReport struct {
	Name       string
	Problems   []document.Problem
	FailedADDs map[string]int // by cause code, since the daemon started
}

// ReportOf returns the report of a node.
func ReportOf(n *store.Node) NodeReport {
	r := NodeReport{Name: n.Metadata.Name, Problems: n.Problems}
	if n.Summary != nil && n.Summary.ADDs != nil {
		r.FailedADDs = n.Summary.ADDs.Causes
	}
	return r
}

// Found returns the report under the doctor's codes and severities, as tables and screens show it:
// as in the doctor, what another problem of the node explains, no less severe, is part of that one.
func (r NodeReport) Found() NodeReport {
	out := NodeReport{Name: r.Name, FailedADDs: make(map[string]int, len(r.FailedADDs))}
	type reason struct {
		code     string
		severity document.Severity
	}
	explained := map[string]reason{}
	for _, p := range r.Problems { // the worst first
		e, ok := catalogue.Lookup(p.Finding)
		if !ok || p.Effect == document.SeverityInfo {
			continue
		}
		for _, code := range slices.Concat(e.Observes(), e.Explains) {
			if explained[code].code == "" {
				explained[code] = reason{e.Code, p.Effect}
			}
		}
	}
	for _, p := range r.Problems {
		p.Code, p.Severity = p.Name(), p.Effect
		if by := explained[p.Code]; by.code != "" && by.severity.Rank() <= p.Severity.Rank() {
			continue
		}
		delete(explained, p.Code)
		out.Problems = append(out.Problems, p)
	}
	for code, times := range r.FailedADDs {
		code = catalogue.Named(code)
		if by := explained[code]; by.code != "" && by.severity.Rank() <= document.SeverityError.Rank() {
			code = by.code
		}
		out.FailedADDs[code] += times
	}
	return out
}

// Cause is one cause with the nodes, of type N, that report it.
type Cause[N any] struct {
	Code     string
	Severity document.Severity // the worst that any node reports
	Nodes    []*Affected[N]    // in the order of the nodes
	Times    int               // failed ADDs with the cause
}

// Affected is one node with what it reports about a cause.
type Affected[N any] struct {
	Name     string
	Node     N
	Severity document.Severity
	Problems []document.Problem // with this cause; none if it only has failed ADDs
	Times    int                // failed ADDs with the cause since the daemon started
}

// Causes groups what nodes report by cause: by severity, worst first, then causes before their
// consequences, then by the number of nodes, most first.
func Causes[N any](nodes []N, report func(N) NodeReport) []*Cause[N] {
	type entry struct {
		group *Cause[N]
		last  int // index of the last added node
	}
	by := map[string]*entry{}
	var out []*Cause[N]
	for i, n := range nodes {
		r := report(n)
		at := func(code string) *Affected[N] {
			e := by[code]
			if e == nil {
				e = &entry{&Cause[N]{Code: code, Severity: document.SeverityInfo}, -1}
				by[code], out = e, append(out, e.group)
			}
			if e.last != i {
				e.last = i
				e.group.Nodes = append(e.group.Nodes, &Affected[N]{Name: r.Name, Node: n, Severity: document.SeverityInfo})
			}
			return e.group.Nodes[len(e.group.Nodes)-1]
		}
		for _, p := range r.Problems {
			a := at(p.Code)
			a.Problems, a.Severity = append(a.Problems, p), worse(p.Severity, a.Severity)
		}
		for code, times := range r.FailedADDs {
			if times > 0 {
				at(code).Times += times
			}
		}
	}
	for _, g := range out {
		for _, a := range g.Nodes {
			g.Times += a.Times
			g.Severity = worse(a.Severity, g.Severity)
		}
	}
	slices.SortFunc(out, func(a, b *Cause[N]) int {
		return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), fleet.ByCause(a.Code, b.Code), cmp.Compare(len(b.Nodes), len(a.Nodes)),
			strings.Compare(a.Code, b.Code))
	})
	return out
}

func worse(a, b document.Severity) document.Severity {
	if a.Rank() < b.Rank() {
		return a
	}
	return b
}

// CauseCounts returns the groups of nodes as documents have them; never nil.
func CauseCounts(nodes []*store.Node) []document.CauseCount {
	groups := Causes(nodes, ReportOf)
	out := make([]document.CauseCount, len(groups))
	for i, g := range groups {
		out[i] = document.CauseCount{Severity: g.Severity, Code: g.Code, Title: CauseTitle(g.Code), Nodes: len(g.Nodes)}
		if e, ok := catalogue.Reported(g.Code); ok {
			out[i].Finding = e.Code
		}
		if g.Times > 0 {
			out[i].FailedADDs = &g.Times
		}
	}
	return out
}
