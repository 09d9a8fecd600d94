package inventory

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

func node(name string, s *introspect.Summary) document.NodeIPAM {
	return document.NodeIPAM{Metadata: document.ObjectMeta{Name: name}, State: document.StateLive, Summary: s}
}

func down(name string) document.NodeIPAM {
	n := node(name, nil)
	n.State, n.Error = document.StateUnreachable, &document.NodeError{Reason: introspect.ReasonTimeout, Message: "no complete answer in time"}
	return n
}

func failures(of map[string]int) *introspect.Summary {
	return &introspect.Summary{ADDs: &introspect.RequestCounts{Causes: of}}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	waiting := failures(map[string]int{"pool-dry": 3, "ec2-throttled": 0})
	waiting.WaitingADDs = new(2)
	for name, tt := range map[string]struct {
		nodes []document.NodeIPAM
		want  []document.CauseCount
	}{
		"none":         {nil, []document.CauseCount{}},
		"nothing said": {[]document.NodeIPAM{node("a", &introspect.Summary{})}, []document.CauseCount{}},
		"counted and reported together": {
			[]document.NodeIPAM{node("a", waiting), node("b", failures(map[string]int{"pool-dry": 4}))},
			[]document.CauseCount{{Severity: document.SeverityError, Code: "pool-dry", Finding: "obs/add-waiting", Title: cause.Code("pool-dry").Title(), Nodes: 2, FailedADDs: new(7)}},
		},
		"causes before what follows from them": {
			[]document.NodeIPAM{node("a", &introspect.Summary{WaitingADDs: new(1)}), node("b", &introspect.Summary{WaitingADDs: new(1)}), down("c")},
			[]document.CauseCount{
				{Severity: document.SeverityError, Code: "timeout", Title: "the node gave no complete answer in time", Nodes: 1},
				{Severity: document.SeverityError, Code: "pool-dry", Finding: "obs/add-waiting", Title: cause.Code("pool-dry").Title(), Nodes: 2},
			},
		},
		"worst first, then of most nodes, then by code": {
			[]document.NodeIPAM{
				node("a", failures(map[string]int{"ec2-throttled": 9, "internal": 1, "subnet-exhausted": 1})),
				node("b", failures(map[string]int{"subnet-exhausted": 1})), down("c"),
			},
			[]document.CauseCount{
				{Severity: document.SeverityError, Code: "timeout", Title: "the node gave no complete answer in time", Nodes: 1},
				{Severity: document.SeverityInfo, Code: "subnet-exhausted", Finding: "ip/subnet-exhausted", Title: cause.Code("subnet-exhausted").Title(), Nodes: 2, FailedADDs: new(2)},
				{Severity: document.SeverityInfo, Code: "ec2-throttled", Finding: "aws/throttled", Title: cause.Code("ec2-throttled").Title(), Nodes: 1, FailedADDs: new(9)},
				{Severity: document.SeverityInfo, Code: "internal", Finding: "obs/add-failing", Title: cause.Code("internal").Title(), Nodes: 1, FailedADDs: new(1)},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, CauseCounts(store.Of(tt.nodes).Nodes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGroups_Nodes: each node appears once per cause, with all its problems of that cause.
func TestGroups_Nodes(t *testing.T) {
	t.Parallel()
	problem := func(s document.Severity, message string) document.Problem {
		return document.Problem{Severity: s, Code: "pool-dry", Message: message}
	}
	reports := []NodeReport{
		{Name: "a", Problems: []document.Problem{problem(document.SeverityInfo, "1"), problem(document.SeverityWarning, "2")}, FailedADDs: map[string]int{"pool-dry": 5}},
		{Name: "b"},
		{Name: "c", Problems: []document.Problem{problem(document.SeverityInfo, "3")}},
	}
	groups := Causes(reports, func(r NodeReport) NodeReport { return r })
	if len(groups) != 1 || len(groups[0].Nodes) != 2 || groups[0].Times != 5 || groups[0].Severity != document.SeverityWarning {
		t.Fatalf("%+v", groups)
	}
	a, c := groups[0].Nodes[0], groups[0].Nodes[1]
	if a.Name != "a" || len(a.Problems) != 2 || a.Times != 5 || a.Severity != document.SeverityWarning {
		t.Errorf("%+v", a)
	}
	if c.Name != "c" || c.Node.Name != "c" || len(c.Problems) != 1 || c.Times != 0 || c.Severity != document.SeverityInfo {
		t.Errorf("%+v", c)
	}
}

// TestTitle: every code that a node can report has a title; unknown codes are shown escaped.
func TestTitle(t *testing.T) {
	t.Parallel()
	codes := []string{
		fleet.CodeNoFreeAddress, fleet.CodeMaxPodsOver, fleet.CodeMaxPodsUnder, fleet.CodeMaxPodsAtRisk, fleet.CodeConfig, fleet.CodeUnplaced, fleet.CodeTerminating,
		fleet.CodeCordoned, fleet.CodePartlyReadable, fleet.CodeMetricsOnly, fleet.CodeNoDaemon,
	}
	for _, r := range []introspect.Reason{
		introspect.ReasonRefused, introspect.ReasonNoSocket, introspect.ReasonForbidden, introspect.ReasonTimeout, introspect.ReasonCancelled, introspect.ReasonUnresolved,
		introspect.ReasonTransport, introspect.ReasonStatus, introspect.ReasonNotFound, introspect.ReasonNotJSON, introspect.ReasonMalformed, introspect.ReasonTooLarge,
		introspect.ReasonNoEndpoint, introspect.ReasonNotServed, introspect.ReasonBadRequest, introspect.ReasonBusy, introspect.ReasonNoPod,
		introspect.ReasonPodNotRunning, introspect.ReasonOff, introspect.ReasonCredential,
	} {
		codes = append(codes, string(r))
	}
	for _, code := range codes {
		if got := CauseTitle(code); got == "" || got == code {
			t.Errorf("%s means %q", code, got)
		}
	}
}

// TestFound: people see what a node reports under the doctor's codes, with failed ADDs of several
// causes of the daemon that are one of the doctor's.
func TestFound(t *testing.T) {
	t.Parallel()
	n := store.NewNode(node("a", &introspect.Summary{
		WaitingADDs: new(2), ADDs: &introspect.RequestCounts{Causes: map[string]int{"internal": 3, "not-supported": 1, "later": 2}},
		MaxPods: &introspect.MaxPods{Value: new(110), TotalCapacity: new(29), Verdict: introspect.MaxPodsOver}, Cordoned: new(true),
	}))
	r := ReportOf(n).Found()
	var got []string
	for _, p := range r.Problems {
		got = append(got, string(p.Severity)+" "+p.Code)
	}
	if diff := cmp.Diff([]string{"error obs/add-waiting", "warning cap/max-pods", "info cordoned"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"obs/add-failing": 4, "later": 2}, r.FailedADDs); diff != "" {
		t.Error(diff)
	}
	n.Summary.Backoffs = []introspect.Backoff{{Scope: "subnet", ID: "subnet-a", Cause: "subnet-exhausted", Until: time.Now().Add(time.Hour)}}
	if r = ReportOf(store.NewNode(n.NodeIPAM)).Found(); slices.ContainsFunc(r.Problems, func(p document.Problem) bool { return p.Code == "obs/add-waiting" }) {
		t.Errorf("what an exhausted subnet explains stands beside it: %+v", r.Problems)
	}
	if title := CauseTitle("cap/max-pods"); title != "max-pods is higher than the node has addresses for" {
		t.Error(title)
	}
}
