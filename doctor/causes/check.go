package causes

import (
	"sync"

	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// Check is a rule of another package, for one code of the catalogue.
type Check struct {
	Code string
	Node func(*Case) []Result   // on each node, or
	All  func([]*Case) []Result // once, over all nodes
}

// Result is a possible finding of a check. All facts of Decisive must hold.
type Result struct {
	Scope    document.FindingScope
	Nodes    []string // that it concerns, of a check over all nodes; none means all
	Summary  string
	Severity *catalogue.Severity // overrides the catalogue's
	Fixes    []int               // those of the catalogue's that apply, from 1; all if empty

	Decisive   []Fact
	Supporting []Fact // raise the confidence
	Context    []Fact // enough to suspect it
}

// As overrides the catalogue's severity.
func (r Result) As(s catalogue.Severity) Result {
	r.Severity = &s
	return r
}

// rulesOf returns the checks of another package as rules.
func rulesOf(checks []Check) (out []rule) {
	candidates := func(results []Result) (out []candidate) {
		for _, r := range results {
			out = append(out, candidate{
				scope: r.Scope, nodes: r.Nodes, summary: r.Summary, severity: r.Severity, fixes: r.Fixes,
				decisive: r.Decisive, supporting: r.Supporting, context: r.Context,
			})
		}
		return out
	}
	for _, check := range checks {
		r := rule{code: check.Code}
		if check.Node != nil {
			r.node = func(c *Case) []candidate { return candidates(check.Node(c)) }
		} else {
			r.all = func(cs []*Case) []candidate { return candidates(check.All(cs)) }
		}
		out = append(out, r)
	}
	return out
}

// Cases returns the last reading of each node, with what follows from it.
func Cases(ev *evidence.Evidence) (cs []*Case) {
	for i := range ev.Nodes {
		cs = append(cs, caseOf(ev, &ev.Nodes[i]))
	}
	heldUp := sync.OnceValues(func() (fails, late bool) {
		for _, c := range cs {
			f, l := c.newPod()
			fails, late = fails || f, late || l
		}
		return fails, late
	})
	for _, c := range cs {
		c.heldUp = heldUp
	}
	return cs
}

// StateFact states something about a source. It is unread if the source is missing or the judge
// does not know, otherwise what the judge says about the content. The value is for display.
func StateFact[T any](
	c *Case, s evidence.Source[T], id, path, expected string, judge func(T) (value any, s State),
) Fact {
	return fact(c, s, id, path, expected, judge)
}

// Both returns the weaker of several facts: the first that does not hold, else the first unread
// one, else the first.
func Both(facts ...Fact) Fact { return both(facts...) }

// Either returns the stronger of several facts: the first that holds, else the first unread one,
// else the first.
func Either(facts ...Fact) Fact { return either(facts...) }

// Not negates a fact.
func Not(f Fact) Fact { return not(f) }

// Some lists the first few names, and their total number.
func Some(names []string) string { return some(names) }

// Count formats a number of things: 1 node, 2 nodes.
func Count(n int, what string) string { return count(n, what) }

// Setting states something about the effective value of a setting.
func (c *Case) Setting(name, expected string, holds func(config.Config) bool) Fact {
	return c.setting(name, expected, holds)
}

// Knows reports whether all these settings were read.
func (c *Case) Knows(names ...string) bool { return c.knows(names...) }

// Denied states that the API server does not grant aws-node what a current release needs.
func (c *Case) Denied() Fact { return c.denied(c.needsRight) }

// Is reports whether Kubernetes calls the node by this name.
func (c *Case) Is(name string) bool { return name == c.own }

// Here returns the pods of this node that have not ended.
func (c *Case) Here() []*evidence.KubePod { return c.here() }

// Attached returns the interfaces that EC2 shows as attached to the node's instance, if it is
// known.
func (c *Case) Attached() (all []evidence.Interface, known bool) {
	return c.attached(), c.instance() != ""
}
