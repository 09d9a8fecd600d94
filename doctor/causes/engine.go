package causes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// Rule decides about one cause. It only states what it found; the engine decides how certain that
// is and whether to report it.
type Rule struct {
	Code string                    // of the catalogue
	Node func(c *Case) []Result    // on each node, or
	All  func(cs []*Case) []Result // once, over all nodes
}

// rules returns the rules of a diagnosis, in the order of the catalogue.
func (o Options) rules() []Rule {
	if o.Checks != nil {
		return o.Checks
	}
	return slices.Concat(ipRules, capRules, configRules, eniRules, cfgnetRules, awsRules, bootRules, sgpRules, netRules, npRules)
}

// Result is a possible finding. All facts of Decisive and required must hold.
type Result struct {
	Scope   document.FindingScope
	Nodes   []string // that it concerns, of a rule over all nodes; none means all
	pods    []string // that it hits, as far as they are known
	Summary string

	Decisive   []Fact // what distinguishes this cause from others
	required   []Fact // what else must hold
	unless     []Fact // what shows another cause, or that it is over: none may hold
	Supporting []Fact // what raises the confidence: who or why
	Context    []Fact // symptom and configuration: enough to suspect the cause

	severity *catalogue.Severity // overrides the catalogue's
	title    string              // overrides the catalogue's, where it says more
	mild     bool                // nothing fails yet: it is not why pods do not start
	fixes    []int               // those of the catalogue's fixes that apply, best first, from 1; all, in its order, if empty
	first    []catalogue.Fix     // what goes before them
	names    map[string]string   // for commands, by placeholder
}

// WithFixes selects and orders the catalogue's fixes, from 1.
func (cd Result) WithFixes(order ...int) Result {
	cd.fixes = order
	return cd
}

// As overrides the catalogue's severity.
func (cd Result) As(s catalogue.Severity) Result {
	cd.severity = &s
	return cd
}

// confidence derives the confidence from the facts of a result.
func (cd *Result) confidence(ceiling catalogue.Confidence) catalogue.Confidence {
	sure := catalogue.None
	if cd.excluded() {
		return sure
	}
	switch all(slices.Concat(cd.Decisive, cd.required)...) {
	case No:
		return sure
	case Yes:
		sure = catalogue.Probable
		if all(cd.Supporting...) == Yes && !slices.ContainsFunc(cd.unless, func(f Fact) bool { return f.State == Unread }) {
			sure = catalogue.Confirmed
		}
	default:
		if len(cd.Context) > 0 && all(cd.Context...) == Yes {
			sure = catalogue.Suspected
		}
	}
	return min(sure, ceiling)
}

// excluded reports whether a fact shows that it is another cause.
func (cd *Result) excluded() bool {
	return slices.ContainsFunc(cd.unless, func(f Fact) bool { return f.State == Yes })
}

// open returns the unread facts that would decide, none if another fact rules the cause out.
func (cd *Result) open() []Fact {
	facts := slices.Concat(cd.Decisive, cd.required)
	if all(facts...) == No || cd.excluded() {
		return nil
	}
	return slices.DeleteFunc(facts, func(f Fact) bool { return f.State != Unread })
}

// Options narrow a diagnosis. The zero value examines every cause.
type Options struct {
	Wants  func(code string) bool // nil selects all
	Checks []Rule                 // examine these, of another package; nil to find faults
}

// found is a finding before it is put into words.
type found struct {
	document.Finding
	entry      *catalogue.Entry
	severity   catalogue.Severity
	confidence catalogue.Confidence
	mild       bool
	pods       []string
}

// Diagnose returns the causes that the evidence shows.
func Diagnose(ev *evidence.Evidence, o Options) document.DoctorReport {
	cs := Cases(ev)
	d := diagnosis{
		Options: o, cases: cs, mode: string(ev.Mode), asked: ev.Scope.Pod,
		ruledOut: map[string]bool{}, undecided: map[string]bool{}, skipped: map[string]bool{}, kinds: map[string]kindResult{},
	}
	for _, c := range cs {
		d.node(c)
	}
	d.together(cs)
	return d.report(ev, cs)
}

type diagnosis struct {
	Options
	cases               []*Case
	mode                string
	asked               evidence.Pod // that the doctor was asked about; empty if none
	here                [][]found    // of each node
	findings, explained []found
	ruledOut, undecided map[string]bool
	skipped             map[string]bool
	observations        []document.Observation
	kinds               map[string]kindResult
	waived              []string // not ruled out on the current node, because sources were not meant to be read
}

// judge evaluates the results of a rule and returns the findings.
func (d *diagnosis) judge(r Rule, results []Result, c *Case) (out []found) {
	entry, ok := catalogue.Lookup(r.Code)
	if !ok {
		panic("rule for " + r.Code + ", which is not in the catalogue")
	}
	ceiling := entry.Ceiling.Of(d.mode)
	// What this mode usually cannot see is judged by what was read all the same.
	unusual := ceiling == catalogue.None
	if unusual {
		ceiling = catalogue.Probable
	}
	decided, waived := true, false
	for _, cd := range results {
		sure := cd.confidence(ceiling)
		if unusual && sure < catalogue.Probable {
			continue
		}
		if sure > catalogue.None {
			out = append(out, d.finding(entry, cd, sure, c))
		}
		if open := cd.open(); sure < catalogue.Probable && len(open) > 0 {
			waived = true
			decided = decided && sure == catalogue.None && !slices.ContainsFunc(open, func(f Fact) bool { return !evidence.Untried(f.Reason) })
		}
	}
	if unusual {
		if len(out) == 0 {
			d.skipped[r.Code] = true
		}
		return out
	}
	if len(results) == 0 && c != nil {
		// Without results, the rule saw everything only if its sources were read.
		missing := c.R.Missing()
		for _, id := range entry.Required {
			if reason, lacks := missing[id]; lacks {
				waived = waived || reason != evidence.MissingAbsent
				decided = decided && evidence.Untried(reason)
			}
		}
	}
	if !decided {
		d.undecided[r.Code] = true
	} else if waived {
		d.waived = append(d.waived, r.Code)
		d.skipped[r.Code] = true
	} else if len(out) == 0 {
		d.ruledOut[r.Code] = true
	}
	return out
}

// node examines one node.
func (d *diagnosis) node(c *Case) {
	var here []found
	if c.noVPCCNI() && d.Checks == nil { // nothing applies to it
		for _, r := range d.rules() {
			if r.Node != nil {
				d.skipped[r.Code] = true
			}
		}
		d.here = append(d.here, nil)
		return
	}
	for _, r := range d.rules() {
		if r.Node != nil && (d.Wants == nil || d.Wants(r.Code)) {
			here = append(here, d.judge(r, r.Node(c), c)...)
		}
	}
	if len(here) == 0 && d.Checks == nil && c.failing().State == Yes {
		for _, code := range d.waived { // something is wrong, and it may be one of these
			d.undecided[code] = true
		}
	}
	d.waived = nil
	d.here = append(d.here, here)
}

// together examines what only all nodes combined show, and then each node's observations.
func (d *diagnosis) together(cs []*Case) {
	var shared []found
	own := cs
	if d.Checks == nil {
		own = slices.DeleteFunc(slices.Clone(cs), (*Case).noVPCCNI)
	}
	for _, r := range d.rules() {
		if r.All != nil && len(own) == 0 {
			d.skipped[r.Code] = true
		} else if r.All != nil && (d.Wants == nil || d.Wants(r.Code)) {
			for _, f := range d.judge(r, r.All(own), nil) {
				for _, c := range cs {
					if f.concerns(c) {
						f.Versions.Detected = union(f.Versions.Detected, c.detected())
					}
				}
				shared = append(shared, f)
			}
		}
	}
	for i, c := range cs {
		here := d.here[i]
		if d.Checks == nil {
			weigh(c, here)
			about := slices.Clone(here)
			for _, f := range shared {
				if f.concerns(c) {
					about = append(about, f)
				}
			}
			here = append(here, d.unexplained(c, about)...)
		}
		left, explained := suppress(here)
		d.findings, d.explained = append(d.findings, left...), append(d.explained, explained...)
	}
	d.findings = append(d.findings, shared...)
}

// concerns reports whether a finding is about a node, or about all.
func (f *found) concerns(c *Case) bool { return len(f.Nodes) == 0 || slices.Contains(f.Nodes, c.Name) }

func (d *diagnosis) finding(entry *catalogue.Entry, cd Result, sure catalogue.Confidence, c *Case) found {
	f := found{entry: entry, confidence: sure, severity: entry.Severity, mild: cd.mild, pods: cd.pods}
	if cd.severity != nil {
		f.severity = *cd.severity
	}
	if sure == catalogue.Suspected {
		f.severity = catalogue.Info // nothing shows any harm
	}
	f.Finding = document.Finding{
		Code: entry.Code, Title: entry.Title, Confidence: sure.String(), Scope: cd.Scope, Nodes: cd.Nodes, Summary: cd.Summary,
		Evidence: []document.FindingEvidence{}, Missing: []document.MissingEvidence{}, Explains: []string{}, Causes: []string{},
		Check: document.CauseCheck{Text: entry.Check.Text, Command: entry.Check.Command}, Fix: []document.CauseFix{}, Links: entry.Links,
		Versions: document.FindingVersions{Detected: []string{}, Affected: entry.Upstream},
	}
	f.Title = or(cd.title, f.Title)
	if f.Scope.Pod == "" {
		f.Scope.Pod = onlyPod(cd.pods)
	}
	absent := make([]Fact, 0, len(cd.unless)) // what is shown is that they do not hold
	for _, f := range cd.unless {
		absent = append(absent, Not(f))
	}
	for _, fact := range slices.Concat(cd.Decisive, cd.required, absent, cd.Supporting, cd.Context) {
		if fact.State == Unread {
			f.Missing = append(f.Missing, document.MissingEvidence{Source: fact.Source, Reason: or(fact.Reason, "unknown"), WouldDecide: fact.Path,
				Nodes: []string{}})
			continue
		}
		e := document.FindingEvidence{Source: fact.Source, ObservedAt: fact.At, Path: fact.Path, Value: fact.Value, Expected: fact.Expected,
			Holds: fact.State == Yes}
		if !slices.Contains(f.Evidence, e) {
			f.Evidence = append(f.Evidence, e)
		}
	}
	if sure > catalogue.Suspected { // a mere suspicion only gets the next check
		// A cause may have more fixes than a kind that it explains.
		order := slices.DeleteFunc(slices.Clone(cd.fixes), func(i int) bool { return i > len(entry.Fixes) })
		if len(order) == 0 {
			for i := range entry.Fixes {
				order = append(order, i+1)
			}
		}
		in := d.places(c)
		if c != nil {
			in["INSTANCE"] = c.instance()
		}
		maps.Copy(in, cd.names)
		nodes := cd.Nodes
		if c != nil {
			nodes = []string{c.Name}
		}
		fixes := slices.Clone(cd.first)
		for _, i := range order {
			fixes = append(fixes, entry.Fixes[i-1])
		}
		for n, x := range fixes {
			command := Fill(x.Command, in)
			same := func(g document.CauseFix) bool { return g.Command == command }
			if n >= len(cd.first) && command != "" && slices.ContainsFunc(f.Fix[:len(cd.first)], same) {
				continue // a sentence says it already
			}
			f.Fix = append(f.Fix, document.CauseFix{
				Text: Fill(x.Text, cd.names), Command: command,
				SideEffects: strings.TrimSpace(x.SideEffect + d.lone(x, cd.names) + d.overridden(x, nodes)),
				Risk:        x.Risk.String(),
			})
		}
		f.Check.Command = Fill(f.Check.Command, in)
	}
	if c != nil {
		if !cd.Scope.Cluster {
			f.Scope.Node, f.Nodes = c.Name, []string{c.Name}
		}
		f.Versions.Detected = c.detected()
	}
	return f
}

// lone warns of the deletion of a pod that nothing makes again, empty for other fixes.
func (d *diagnosis) lone(x catalogue.Fix, names map[string]string) string {
	if x.Command != catalogue.DeletePod {
		return ""
	}
	of := evidence.PodOf(names["NAMESPACE"], names["POD"])
	for _, c := range d.cases {
		owned := func(p evidence.KubePod) bool { return p.Owner != "" }
		p, there := find(c.R.Pods.Content, func(p evidence.KubePod) bool { return p.Pod == of })
		if there && !owned(p) && slices.ContainsFunc(c.R.Pods.Content, owned) { // else owners were not read
			return " It has no controller, so nothing makes it again: save it first."
		}
	}
	return ""
}

// overridden names the labels of Nodes that keep a fix of the DaemonSet's settings from having an effect
// there, empty if there are none.
func (d *diagnosis) overridden(x catalogue.Fix, nodes []string) (text string) {
	settings, _ := strings.CutPrefix(x.Command, catalogue.SetEnv)
	if settings == x.Command {
		return ""
	}
	for setting := range strings.FieldsSeq(settings) {
		name, _, _ := strings.Cut(setting, "=")
		if slices.ContainsFunc(d.cases, func(c *Case) bool { return slices.Contains(nodes, c.Name) && c.byLabel[name] != "" }) {
			text += " The label " + config.LabelOf(name) + " of the Node overrides " + name + " there: change the label."
		}
	}
	return text
}

// detected returns the release of the daemon, none if it is unknown.
func (c *Case) detected() []string {
	switch {
	case c.Ours:
		return []string{strings.TrimSpace(c.R.Summary.Content.Version + " (cnictl)")}
	case c.Release != evidence.Version{}:
		return []string{c.Release.String()}
	}
	return []string{}
}

// suppress removes the findings of a node that another of its findings explains, and records them
// there. Only findings that are at least probable explain others.
func suppress(here []found) (left, explained []found) {
	for i := range here {
		f := &here[i]
		if f.confidence < catalogue.Probable {
			continue
		}
		consequences := consequences(f.Code)
		for j := range here {
			// A finding of mere interest explains no harm.
			if other := &here[j]; consequences[other.Code] && other.Code != f.Code && !f.spares(other) &&
				(f.severity > catalogue.Info || other.severity == catalogue.Info) && !slices.Contains(other.Causes, f.Code) {
				other.Causes = append(other.Causes, f.Code)
				if !other.entry.Always { // it does that harm
					f.severity = max(f.severity, other.severity)
				}
				if !slices.Contains(f.Explains, other.Code) {
					f.Explains = append(f.Explains, other.Code)
				}
			}
		}
	}
	for _, f := range here {
		if len(f.Causes) > 0 && !f.entry.Always {
			explained = append(explained, f)
		} else {
			left = append(left, f)
		}
	}
	return left, explained
}

// consequences returns all causes that follow from one, directly or indirectly.
func consequences(code string) map[string]bool {
	out := map[string]bool{}
	todo := []string{code}
	for len(todo) > 0 {
		entry, _ := catalogue.Lookup(todo[0])
		todo = todo[1:]
		for _, next := range entry.Explains {
			if !out[next] {
				out[next] = true
				todo = append(todo, next)
			}
		}
	}
	return out
}

func (d *diagnosis) report(ev *evidence.Evidence, cs []*Case) document.DoctorReport {
	r := document.DoctorReport{
		APIVersion: introspect.APIVersion, Kind: document.KindDoctorReport, SchemaVersion: document.DoctorSchemaVersion,
		SampledAt: ev.At, Mode: d.mode, Nodes: len(ev.Nodes), Findings: group(d.findings), Explained: group(d.explained),
		Observations: []document.Observation{}, NotChecked: notChecked(cs, d.Checks != nil), Undecided: []string{}, NotCheckable: []string{},
		RuledOut: []string{}, Suppressed: []string{}, Reported: []document.ReportedText{}, Errors: []document.NodeError{},
	}
	for _, c := range cs {
		if c.Now.After(r.SampledAt) {
			r.SampledAt = c.Now
		}
		if why := c.R.Unread(); why != "" {
			message := "its daemon could not be read: " + why
			r.Errors = append(r.Errors, document.NodeError{Node: c.Name, Reason: introspect.Reason(why), Message: message})
		}
	}
	r.Partial = len(r.Errors) > 0
	for _, f := range slices.Concat(r.Findings, r.Explained) {
		delete(d.undecided, f.Code)
		delete(d.skipped, f.Code)
		delete(d.ruledOut, f.Code)
	}
	for _, codes := range []map[string]bool{d.undecided, d.skipped} {
		for code := range codes {
			delete(d.ruledOut, code)
		}
	}
	r.Undecided = append(r.Undecided, slices.Sorted(maps.Keys(d.undecided))...)
	for code := range d.undecided {
		delete(d.skipped, code)
	}
	r.NotCheckable = append(r.NotCheckable, slices.Sorted(maps.Keys(d.skipped))...)
	r.RuledOut = append(r.RuledOut, slices.Sorted(maps.Keys(d.ruledOut))...)
	for _, text := range ev.Report {
		logged := document.ReportedText{Text: text, Causes: []string{}}
		for _, match := range catalogue.Explain(text) {
			logged.Causes = append(logged.Causes, match.Causes()...)
		}
		r.Reported = append(r.Reported, logged)
	}
	r.Observations = append(r.Observations, d.observations...)
	r.Checks = document.CheckCounts{Passed: len(r.RuledOut), Inconclusive: len(r.Undecided), NotRun: len(r.NotCheckable)}
	for _, result := range d.kinds {
		switch result {
		case kindPassed:
			r.Checks.Passed++
		case kindInconclusive:
			r.Checks.Inconclusive++
		case kindNotRun:
			r.Checks.NotRun++
		}
	}
	r.Verdict = Verdict(&r)
	return r
}

// places are the names of the cluster, its region and its VPC, as far as a node knows them, or the
// first ones if c is nil.
func (d *diagnosis) places(c *Case) map[string]string {
	of := d.cases[:min(len(d.cases), 3)]
	if c != nil {
		of = []*Case{c}
	}
	names := map[string]string{}
	for _, c := range of {
		for word, name := range c.places() {
			if names[word] == "" {
				names[word] = name
			}
		}
	}
	return names
}

// placeholder matches the words in capitals of a command.
var placeholder = lazy.Regexp(`\b[A-Z][A-Z_]*\b`)

// plain matches what may go into a command as it is; anything else stays a placeholder.
var plain = lazy.Regexp(`^[A-Za-z0-9/][A-Za-z0-9._:/-]*$`)

// separator stands between names that take the place of one word.
const separator = "\n"

// Fill puts names into a command, in place of the words in capitals. A command about a pod of the CNI does not
// take the name of another pod.
func Fill(command string, names map[string]string) string {
	of, pod := names["NAMESPACE"], names["POD"]
	other := strings.Contains(command, "-n kube-system") && of != "" && of != "kube-system" ||
		strings.Contains(command, " -c aws-") && !strings.HasPrefix(pod, "aws-node")
	return placeholder().ReplaceAllStringFunc(command, func(word string) string {
		if word == "POD" && other {
			return word
		}
		known := strings.Split(names[word], separator)
		if slices.ContainsFunc(known, func(name string) bool { return !plain().MatchString(name) }) {
			return word
		}
		return strings.Join(known, " ")
	})
}

// mostFixes bounds the fixes of a finding on many nodes, each with names of its own.
const mostFixes = 12

// group joins findings of the same cause on several nodes and sorts the result, worst first, then
// surest.
func group(all []found) []document.Finding {
	slices.SortStableFunc(all, worse) // the worst finding of a cause represents it
	var out []found
	at := map[string]int{}
	perNode := map[string][]document.FindingOnNode{}
	for _, f := range all {
		i, ok := at[f.Code]
		if !ok {
			at[f.Code], i = len(out), len(out)
			out = append(out, f)
		}
		into := &out[i]
		if len(f.Nodes) == 1 && f.severity == into.severity {
			perNode[f.Code] = append(perNode[f.Code], document.FindingOnNode{Node: f.Nodes[0], Summary: f.Summary})
		}
		if !ok {
			continue
		}
		if f.severity == into.severity { // what harms one node does not harm those of a milder finding
			into.Nodes = union(into.Nodes, f.Nodes)
		}
		for _, fix := range f.Fix {
			if len(into.Fix) < mostFixes && !slices.Contains(into.Fix, fix) { // another problem of the same cause
				into.Fix = append(into.Fix, fix)
				if !strings.Contains(into.Summary, f.Summary) {
					into.Summary, into.Evidence = into.Summary+"; "+f.Summary, append(into.Evidence, f.Evidence...)
				}
			}
		}
		into.Explains, into.Causes = union(into.Explains, f.Explains), union(into.Causes, f.Causes)
		into.Versions.Detected = union(into.Versions.Detected, f.Versions.Detected)
	}
	findings := []document.Finding{}
	for _, f := range out {
		f.Severity = f.severity.String()
		if len(f.Nodes) > 1 {
			f.Scope.Node = ""
		}
		if f.PerNode = []document.FindingOnNode{}; differ(perNode[f.Code]) {
			f.PerNode = perNode[f.Code]
		}
		findings = append(findings, f.Finding)
	}
	return findings
}

// differ tells whether several nodes have different summaries.
func differ(nodes []document.FindingOnNode) bool {
	return slices.ContainsFunc(nodes, func(n document.FindingOnNode) bool { return n.Node != nodes[0].Node && n.Summary != nodes[0].Summary })
}

// union appends to a what only b has.
func union(a, b []string) []string {
	have := make(map[string]bool, len(a))
	for _, s := range a {
		have[s] = true
	}
	for _, s := range b {
		if !have[s] {
			have[s] = true
			a = append(a, s)
		}
	}
	return a
}

func worse(a, b found) int {
	return cmp.Or(cmp.Compare(b.severity, a.severity), cmp.Compare(b.confidence, a.confidence), strings.Compare(a.Code, b.Code))
}

// notChecked returns the sources that could not be read, by source and reason. Only a migration
// needs those of an installation.
func notChecked(cs []*Case, move bool) []document.MissingEvidence {
	by := map[[2]string]*document.MissingEvidence{}
	for _, c := range cs {
		for id, reason := range c.R.Missing() {
			if !move && slices.Contains(evidence.InstallationSources(), id) {
				continue
			}
			key := [2]string{id, reason}
			if by[key] == nil {
				by[key] = &document.MissingEvidence{Source: id, Reason: reason, Nodes: []string{}}
			}
			by[key].Nodes = append(by[key].Nodes, c.Name)
		}
	}
	out := []document.MissingEvidence{}
	for _, key := range slices.SortedFunc(maps.Keys(by), func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	}) {
		out = append(out, *by[key])
	}
	return out
}

// Verdict returns the result in one line.
func Verdict(r *document.DoctorReport) string {
	nodes := Count(r.Nodes, "node")
	harmful := 0
	on := map[string]bool{}
	everywhere := false
	for _, f := range r.Findings {
		if f.Severity == catalogue.Info.String() {
			continue
		}
		harmful++
		everywhere = everywhere || len(f.Nodes) == 0
		for _, n := range f.Nodes {
			on[n] = true
		}
	}
	switch {
	case harmful > 0 && everywhere:
		return fmt.Sprintf("%s; %s examined", Count(harmful, "problem"), nodes)
	case harmful > 0 && r.Nodes == 1:
		return Count(harmful, "problem") + " on 1 node"
	case harmful > 0:
		return fmt.Sprintf("%s on %d of %s", Count(harmful, "problem"), len(on), nodes)
	case r.Checks.Passed == 0 && r.Checks.Inconclusive+r.Checks.NotRun > 0:
		return fmt.Sprintf("Nothing could be checked on %s (%s)", nodes, r.Checks)
	case len(r.Suppressed) > 0:
		return fmt.Sprintf("Only accepted problems on %s (%s)", nodes, r.Checks)
	}
	unread := ""
	if len(r.Errors) > 0 {
		why := func(e document.NodeError) string { return e.Node + ": " + string(e.Reason) }
		unread = "; the daemon could not be read on " + Some(each(r.Errors, why))
	}
	return fmt.Sprintf("No problems found on %s (%s)%s", nodes, r.Checks, unread)
}

// Count formats a number of things: 1 node, 2 nodes.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// spares tells whether another finding hits a pod that this one does not, as far as they are known:
// then it is no mere consequence.
func (f *found) spares(other *found) bool {
	return len(f.pods) > 0 && slices.ContainsFunc(other.pods, func(pod string) bool { return !slices.Contains(f.pods, pod) })
}
