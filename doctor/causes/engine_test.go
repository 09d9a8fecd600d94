package causes

import (
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
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

// TestSuppress: a finding that is at least probable explains those that follow from it, unless it
// is of mere interest and they are not. A suspicion explains nothing.
func TestSuppress(t *testing.T) {
	t.Parallel()
	cause, effect := &catalogue.Entry{Code: "ip/subnet-exhausted"}, (*catalogue.Entry)(nil)
	if entry, ok := catalogue.Lookup(cause.Code); ok && len(entry.Explains) > 0 {
		cause = entry
		effect, _ = catalogue.Lookup(entry.Explains[0])
	}
	if effect == nil || effect.Always {
		t.Fatalf("%s explains nothing that it can hide", cause.Code)
	}
	of := func(e *catalogue.Entry, severity catalogue.Severity, sure catalogue.Confidence) found {
		return found{entry: e, severity: severity, confidence: sure, Finding: document.Finding{Code: e.Code}}
	}
	for _, x := range []struct {
		name   string
		cause  found
		effect catalogue.Severity
		hidden bool
	}{
		{"confirmed", of(cause, catalogue.Critical, catalogue.Confirmed), catalogue.Warning, true},
		{"probable", of(cause, catalogue.Warning, catalogue.Probable), catalogue.Critical, true},
		{"suspected", of(cause, catalogue.Info, catalogue.Suspected), catalogue.Warning, false},
		{"suspected, and so is what it would explain", of(cause, catalogue.Info, catalogue.Suspected), catalogue.Info, false},
		{"of mere interest", of(cause, catalogue.Info, catalogue.Confirmed), catalogue.Warning, false},
		{"both of mere interest", of(cause, catalogue.Info, catalogue.Confirmed), catalogue.Info, true},
	} {
		left, explained := suppress([]found{x.cause, of(effect, x.effect, catalogue.Confirmed)})
		if hidden := len(explained) == 1 && explained[0].Code == effect.Code && slices.Equal(left[0].Explains, []string{effect.Code}); hidden != x.hidden || len(left)+len(explained) != 2 {
			t.Errorf("%s: left %+v, explained %+v", x.name, left, explained)
		}
	}
}

// TestDiagnose_ReadAllTheSame: what a mode usually cannot see is judged if it was read all the same,
// such as the kernel of a node whose daemon does not answer, by a command in its container.
func TestDiagnose_ReadAllTheSame(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		if f.name != "net/rules-flushed@checkpoint" {
			continue
		}
		ev := *f.ev
		ev.Mode = evidence.ModeCluster
		r := Diagnose(&ev, Options{})
		if len(r.Findings) != 1 || r.Findings[0].Code != "net/rules-flushed" || r.Findings[0].Confidence != catalogue.Probable.String() {
			t.Errorf("found %+v", r.Findings)
		}
		return
	}
	t.Error("the fixture is missing")
}

// TestFill: names go into a command as far as they are plain; one about a pod of the CNI takes no other pod's name.
func TestFill(t *testing.T) {
	t.Parallel()
	names := map[string]string{"NAMESPACE": "shop", "POD": "web-1", "NODE": "a b"}
	for command, want := range map[string]string{
		"kubectl -n NAMESPACE describe pod POD":       "kubectl -n shop describe pod web-1",
		"kubectl -n kube-system describe pod POD":     "kubectl -n kube-system describe pod POD",
		"kubectl -n kube-system logs POD -c aws-node": "kubectl -n kube-system logs POD -c aws-node",
		"cnictl node NODE":                            "cnictl node NODE",
	} {
		if got := Fill(command, names); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	names = map[string]string{"NAMESPACE": "kube-system", "POD": "aws-node-x2"}
	if got := Fill("kubectl -n kube-system logs POD -c aws-node", names); got != "kubectl -n kube-system logs aws-node-x2 -c aws-node" {
		t.Error(got)
	}
}
