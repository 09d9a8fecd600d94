package overview

import (
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
)

func of(name string, state document.State, severity document.Severity, word string, reason introspect.Reason) *store.Node {
	n := &store.Node{Word: word, Severity: severity}
	n.Metadata.Name, n.State = name, state
	if state == document.StateLive {
		n.Summary, n.Known = &introspect.Summary{}, true
	}
	if reason != "" {
		n.Error = &document.NodeError{Reason: reason, Message: "a long sentence that says why in full"}
	}
	if severity != "" {
		n.Problems = []document.Problem{fleet.Judged(document.Problem{Severity: severity, Code: "x"})}
	}
	return n
}

// TestOrderOfStates: the worst comes first. Nodes that need no daemon follow the healthy ones.
func TestOrderOfStates(t *testing.T) {
	t.Parallel()
	want := []string{"down", "ill as well", "warns", "half read", "cordoned", "well", "hinted", "windows"}
	nodes := []*store.Node{
		of("windows", document.StateNoDaemon, document.SeverityInfo, "no daemon", introspect.ReasonNoPod),
		of("well", document.StateLive, "", "ok", ""),
		of("cordoned", document.StateLive, document.SeverityInfo, "cordoned", ""),
		of("hinted", document.StateLive, document.SeverityInfo, "ok", ""),
		of("warns", document.StateLive, document.SeverityWarning, "no-free-address", ""),
		of("down", document.StateUnreachable, document.SeverityError, "unreachable: a long sentence", introspect.ReasonTimeout),
	}
	// What could not be read of a node weighs less than what is wrong with it.
	unread := fleet.Judged(document.Problem{Severity: document.SeverityWarning, Code: fleet.CodeMetricsOnly})
	half := of("half read", document.StateMetricsOnly, document.SeverityWarning, "metrics-only", introspect.ReasonTimeout)
	half.Problems = []document.Problem{unread, fleet.Judged(document.Problem{Severity: document.SeverityInfo, Code: "x"})}
	ill := of("ill as well", document.StateMetricsOnly, document.SeverityWarning, "metrics-only", introspect.ReasonTimeout)
	ill.Problems = append(ill.Problems, unread)
	nodes = append([]*store.Node{half, ill}, nodes...)
	order, err := query.ParseOrder("state", columns())
	if err != nil {
		t.Fatal(err)
	}
	order.Sort(nodes, func(n *store.Node) string { return map[string]string{"well": "1", "hinted": "2"}[n.Metadata.Name] })
	var got []string
	for _, n := range nodes {
		got = append(got, n.Metadata.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("ordered %v, want %v", got, want)
	}
}

func TestStateInFewWords(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]*store.Node{
		"unreachable: timeout": of("a", document.StateUnreachable, document.SeverityError, "unreachable: a long sentence", introspect.ReasonTimeout),
		"forbidden":            of("a", document.StateForbidden, document.SeverityError, "forbidden: a long sentence", introspect.ReasonForbidden),
		"":                     of("a", document.StateLive, "", "ok", ""), // unchanged
	} {
		if got, ok := state(n, time.Time{}); got != want || ok != (want != "") {
			t.Errorf("%s is shown as %q, %v; want %q", n.Word, got, ok, want)
		}
	}
}

func TestLate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	n := of("a", document.StateLive, "", "ok", "")
	for age, want := range map[time.Duration]bool{19 * time.Second: false, 20 * time.Second: false, 21 * time.Second: true} {
		at := now.Add(-age)
		n.SampledAt = &at
		if got, late := late(n, now, 10*time.Second); late != want || late && got != age {
			t.Errorf("%v old with a sample every 10 s: %v %v", age, got, late)
		}
	}
	if _, late := late(of("b", document.StateAPIOnly, "", "", ""), now, time.Second); late {
		t.Error("what was never read is no old reading")
	}
}
