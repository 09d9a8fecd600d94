package overview

import (
	"slices"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/store"
)

func of(name string, state introspect.State, severity introspect.Severity, word string, reason introspect.Reason) *store.Node {
	n := &store.Node{Word: word, Severity: severity}
	n.Metadata.Name, n.State = name, state
	if state == introspect.StateLive {
		n.Summary, n.Known = &introspect.Summary{}, true
	}
	if reason != "" {
		n.Error = &introspect.NodeError{Reason: reason, Message: "a long sentence that says why in full"}
	}
	if severity != "" {
		n.Problems = []introspect.Problem{{Severity: severity, Code: "x"}}
	}
	return n
}

// The worst is first; where nothing runs and nothing need comes after what is well.
func TestOrderOfStates(t *testing.T) {
	t.Parallel()
	want := []string{"down", "warns", "cordoned", "well", "hinted", "windows"}
	nodes := []*store.Node{
		of("windows", introspect.StateNoDaemon, introspect.SeverityInfo, "no daemon", introspect.ReasonNoPod),
		of("well", introspect.StateLive, "", "ok", ""),
		of("cordoned", introspect.StateLive, introspect.SeverityInfo, "cordoned", ""),
		of("hinted", introspect.StateLive, introspect.SeverityInfo, "ok", ""),
		of("warns", introspect.StateLive, introspect.SeverityWarning, "no-free-address", ""),
		of("down", introspect.StateUnreachable, introspect.SeverityError, "unreachable: a long sentence", introspect.ReasonTimeout),
	}
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
		"unreachable: timeout": of("a", introspect.StateUnreachable, introspect.SeverityError, "unreachable: a long sentence", introspect.ReasonTimeout),
		"forbidden":            of("a", introspect.StateForbidden, introspect.SeverityError, "forbidden: a long sentence", introspect.ReasonForbidden),
		"":                     of("a", introspect.StateLive, "", "ok", ""), // as it stands
	} {
		if got, ok := state(n); got != want || ok != (want != "") {
			t.Errorf("%s is shown as %q, %v; want %q", n.Word, got, ok, want)
		}
	}
}
