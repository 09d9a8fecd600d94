package report

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
)

// Severities returns the names of the severities, mildest first.
func Severities() []string {
	var names []string
	for s := catalogue.Info; s <= catalogue.Critical; s++ {
		names = append(names, s.String())
	}
	return names
}

// Severity returns the severity of a name, and false if there is none.
func Severity(name string) (catalogue.Severity, bool) {
	at := slices.Index(Severities(), name)
	return catalogue.Severity(max(0, at)), at >= 0
}

// Result is the outcome of a diagnosis.
type Result int

// Results.
const (
	Clean      Result = iota // nothing at or above the threshold
	Found                    // a finding at or above it
	NoEvidence               // nothing of what was asked for could be read, or with strict not all of it
	Partial                  // nothing is wrong with what was read, but the daemons of some nodes were not
)

// ResultOf compares the findings with a threshold. It does not depend on the output form. strict
// wants every check to have a result.
func ResultOf(r *document.DoctorReport, threshold catalogue.Severity, strict bool) Result {
	harmful := false
	for _, f := range r.Findings {
		s, _ := Severity(f.Severity)
		if s >= threshold {
			return Found
		}
		harmful = harmful || s > catalogue.Info
	}
	if strict && r.Checks.Inconclusive > 0 || !harmful && r.Checks.Passed == 0 && r.Checks.Inconclusive+r.Checks.NotRun > 0 {
		return NoEvidence
	}
	if !harmful && len(r.Errors) > 0 {
		return Partial
	}
	return Clean
}

// FillIn puts the names of each finding into its commands, in place of the words in capitals.
func FillIn(r *document.DoctorReport) {
	for _, list := range [][]document.Finding{r.Findings, r.Explained} {
		for i := range list {
			f := &list[i]
			f.Fix = slices.Clone(f.Fix)
			f.Check.Command = filled(f.Check.Command, f.Scope)
			for j := range f.Fix {
				f.Fix[j].Command = filled(f.Fix[j].Command, f.Scope)
			}
		}
	}
}

func filled(command string, scope document.FindingScope) string {
	namespace, pod, _ := strings.Cut(scope.Pod, "/")
	return causes.Fill(command, map[string]string{"NODE": scope.Node, "SUBNET": scope.Subnet, "ENI": scope.ENI, "NAMESPACE": namespace,
		"POD": pod})
}

// Where says in a few words what a finding is about.
func Where(f *document.Finding) string {
	var parts []string
	add := func(kind, name string) {
		if name != "" {
			parts = append(parts, kind+" "+name)
		}
	}
	switch {
	case f.Scope.Cluster:
		parts = append(parts, "cluster")
	case len(f.Nodes) > 1:
		parts = append(parts, fmt.Sprintf("%d nodes", len(f.Nodes)))
	case f.Scope.Node == "" && len(f.Nodes) == 1:
		add("node", f.Nodes[0])
	default:
		add("node", f.Scope.Node)
	}
	add("pod", f.Scope.Pod)
	add("interface", f.Scope.ENI)
	if f.Scope.Subnet != "" {
		parts = append(parts, f.Scope.Subnet) // the ID says what it is
	}
	return strings.Join(parts, ", ")
}
