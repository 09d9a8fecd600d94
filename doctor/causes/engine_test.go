package causes

import (
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/catalogue"
)

// TestGroup: the findings of a cause are one, as bad as the worst, which names only the nodes that
// it harms as much. What another node's finding advises is kept.
func TestGroup(t *testing.T) {
	t.Parallel()
	of := func(severity catalogue.Severity, node, fix string) found {
		return found{severity: severity, confidence: catalogue.Confirmed, Finding: document.Finding{
			Code: "ip/subnet-exhausted", Summary: node + " is short", Nodes: []string{node}, Fix: []document.CauseFix{{Text: fix}},
			Scope: document.FindingScope{Node: node},
		}}
	}
	got := group([]found{
		of(catalogue.Info, "note", "wait"), of(catalogue.Critical, "a", "grow"), of(catalogue.Warning, "mild", "grow"), of(catalogue.Critical, "b", "grow"),
	})
	if len(got) != 1 {
		t.Fatalf("%d findings, want 1: %+v", len(got), got)
	}
	f := got[0]
	if f.Severity != catalogue.Critical.String() || !slices.Equal(f.Nodes, []string{"a", "b"}) || f.Scope.Node != "" {
		t.Errorf("severity %s on %q, scope %+v", f.Severity, f.Nodes, f.Scope)
	}
	if want := []document.CauseFix{{Text: "grow"}, {Text: "wait"}}; !slices.Equal(f.Fix, want) || !strings.Contains(f.Summary, "note is short") {
		t.Errorf("fixes %+v, %q", f.Fix, f.Summary)
	}
}
