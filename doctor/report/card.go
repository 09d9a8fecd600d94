package report

import (
	"fmt"
	"strings"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/show"
)

// Card is a finding in the words and the order in which people read it: where, what was found, what
// fixes it, and only then what shows it. The command and the screen paint it. Its texts are not safe
// to print.
type Card struct {
	Where  string   // with the names of its nodes
	Found  []string // in one line, or in a line per node where the nodes differ
	Unsaid int      // nodes left out of Found
	Fixes  []Step   // alternatives, the first is the usual one
	Check  Step
	Proofs []Proof // for the finding, then against it
	Open   []Proof // what could not be read, and would raise the confidence
}

// Step is something to do, with what it may harm and what else it does.
type Step struct{ Text, Command, Risk, Note string }

// StepOf is the step of a fix.
func StepOf(fix document.CauseFix) Step {
	step := Step{fix.Text, fix.Command, fix.Risk, fix.SideEffects}
	if fix.Risk == catalogue.NoRisk.String() {
		step.Risk = ""
	}
	return step
}

// Warning is what to know before the step is done; "" = nothing.
func (s Step) Warning() string {
	if s.Risk == "" {
		return s.Note
	}
	return strings.TrimSpace("risk: " + s.Risk + ". " + s.Note)
}

// Proof is a fact that was read, or one that was not.
type Proof struct {
	Holds bool // it supports the finding
	Text  string
	From  string // where and when it was read, and what a healthy one is
}

// CardOf lays out a finding. It names at most most of its nodes, each by name.
func CardOf(f *document.Finding, now time.Time, most int, name func(node string) string) Card {
	named := *f
	if named.Scope.Node != "" {
		named.Scope.Node = name(f.Scope.Node)
	}
	named.Nodes = nil
	for _, n := range f.Nodes {
		named.Nodes = append(named.Nodes, name(n))
	}
	c := Card{Where: Where(&named), Check: Step{Text: f.Check.Text, Command: f.Check.Command}}
	if len(f.Nodes) > 1 {
		c.Where += ": " + Names(named.Nodes, most)
	}
	for _, n := range f.PerNode[:min(len(f.PerNode), most)] {
		c.Found = append(c.Found, name(n.Node)+": "+Untitled(f, n.Summary))
	}
	c.Unsaid = len(f.PerNode) - len(c.Found)
	if found := Untitled(f, f.Summary); found != "" && found != f.Title && len(f.PerNode) == 0 {
		c.Found = []string{found}
	}
	for _, fix := range f.Fix {
		c.Fixes = append(c.Fixes, StepOf(fix))
	}
	for _, holds := range []bool{true, false} {
		for _, e := range f.Evidence {
			if e.Holds == holds {
				c.Proofs = append(c.Proofs, Proof{holds, Line(e), from(e, now)})
			}
		}
	}
	for _, m := range f.Missing {
		c.Open = append(c.Open, Proof{Text: m.WouldDecide + ": " + Reason(m.Reason), From: sourceWords(m.Source)})
	}
	return c
}

// Names lists at most most names.
func Names(all []string, most int) string {
	if more := len(all) - most; more > 0 {
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(all, ", ")
}

// from says where a fact was read, how long ago if that is not just now, and what was expected.
func from(e document.FindingEvidence, now time.Time) string {
	text := sourceWords(e.Source)
	if !e.ObservedAt.IsZero() && now.Sub(e.ObservedAt) >= time.Second {
		text += ", " + show.Since(&e.ObservedAt, now) + " ago"
	}
	if e.Expected != "" && e.Holds { // what contradicts the finding is as expected
		text += "; expected: " + e.Expected
	}
	return text
}

// sourceWords names a source in words, by the beginning of its id.
func sourceWords(id string) string {
	family, _, _ := strings.Cut(id, ".")
	if words := families[family]; words != "" {
		return words
	}
	return id
}
