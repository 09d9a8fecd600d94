package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
)

func TestProblems(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	card := func(total, assigned, cooling, free, limit int) []introspect.CardSummary {
		return []introspect.CardSummary{{Total: total, Assigned: assigned, Cooling: &cooling, Free: free, AddressLimit: &limit}}
	}
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	tests := map[string]struct {
		node document.NodeIPAM
		word string
		want []string // severity, code and message
	}{
		"nothing": {document.NodeIPAM{Summary: &introspect.Summary{Cards: card(9, 3, 1, 5, 27)}}, "ok", nil},
		"unreachable": {
			document.NodeIPAM{State: document.StateUnreachable, Error: &document.NodeError{Reason: introspect.ReasonRefused, Message: "connection refused"}},
			"unreachable: refused", []string{"error refused unreachable: connection refused"},
		},
		"not asked yet": {document.NodeIPAM{State: document.StateAPIOnly}, "not read yet", nil},
		"stale, and full when it was read": {
			document.NodeIPAM{State: document.StateStale, Error: &document.NodeError{Reason: introspect.ReasonTimeout, Message: "no answer"}, Summary: &introspect.Summary{Cards: card(27, 27, 0, 0, 27)}},
			"stale: timeout", []string{"error timeout stale: no answer", "warning pool-full all 27 addresses in use, the node's limit"},
		},
		"metrics only": {
			document.NodeIPAM{State: document.StateMetricsOnly, Error: &document.NodeError{Reason: introspect.ReasonOff, Message: "off"}, Summary: &introspect.Summary{Cards: card(9, 3, 0, 6, 27)}},
			"metrics-only: introspection-off", []string{"warning metrics-only only its metrics could be read: off"},
		},
		"on Windows": {
			document.NodeIPAM{State: document.StateNoDaemon, Object: &document.NodeObject{OS: "windows"}, Error: &document.NodeError{Reason: introspect.ReasonNoPod, Message: "no pod"}},
			"no daemon needed", []string{"info no-daemon no daemon needed"},
		},
		"its pod is missing": {
			document.NodeIPAM{State: document.StateNoDaemon, Object: &document.NodeObject{OS: "linux"}, Error: &document.NodeError{Reason: introspect.ReasonNoPod, Message: "no pod"}},
			"no daemon: no-pod", []string{"error no-pod no daemon: no pod"},
		},
		"enis not read": {
			document.NodeIPAM{Summary: &introspect.Summary{}, Error: &document.NodeError{Reason: introspect.ReasonTimeout, Message: "no complete answer in time"}},
			"partly-read", []string{"warning partly-read partly read: no complete answer in time"},
		},
		"an empty pool is starting, not dry": {document.NodeIPAM{Summary: &introspect.Summary{Cards: card(0, 0, 0, 0, 27)}}, "ok", nil},
		"last free address":                  {document.NodeIPAM{Summary: &introspect.Summary{Cards: card(27, 26, 0, 1, 27)}}, "ok", nil},
		"none free, room to grow": {
			document.NodeIPAM{Summary: &introspect.Summary{Cards: card(9, 9, 0, 0, 27)}}, "no-free-address", []string{"warning no-free-address none of 9 addresses free"},
		},
		"full": {
			document.NodeIPAM{Summary: &introspect.Summary{Cards: card(27, 27, 0, 0, 27)}}, "pool-full", []string{"warning pool-full all 27 addresses in use, the node's limit"},
		},
		"full and cooling": {
			document.NodeIPAM{Summary: &introspect.Summary{Cards: card(27, 24, 3, 0, 27)}}, "addresses-cooling", []string{"warning addresses-cooling no free address, 3 cooling, limit reached"},
		},
		"waiting outranks full": {
			document.NodeIPAM{Summary: &introspect.Summary{Cards: card(9, 9, 0, 0, 27), WaitingADDs: new(1)}}, "1 waiting",
			[]string{"error pool-dry 1 ADD waits for an address", "warning no-free-address none of 9 addresses free"},
		},
		"a back-off that ADDs wait for comes before them": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{WaitingADDs: new(2), Backoffs: []introspect.Backoff{
				{Scope: "release", Until: now.Add(1), Cause: "ec2-throttled"}, {Scope: "subnet", ID: "subnet-1", Until: now.Add(1), Cause: "subnet-exhausted"},
			}}}, "2 waiting", []string{
				"error subnet-exhausted back-off on subnet-1: the subnet has no free addresses", "error pool-dry 2 ADDs wait for an address",
				"warning ec2-throttled back-off on release: EC2 is throttling requests",
			},
		},
		"a clock that ran out is no problem": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{Backoffs: []introspect.Backoff{
				{Scope: "attach", Until: now, Cause: "ec2-throttled"}, {Scope: "subnet", ID: "subnet-1", Until: now.Add(1), Cause: "subnet-exhausted"},
			}}}, "subnet-exhausted", []string{"warning subnet-exhausted back-off on subnet-1: the subnet has no free addresses"},
		},
		"old errors are history": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{LastErrors: []introspect.LastError{
				{At: now.Add(-freshError), Operation: "ADD", Cause: "pool-dry", Message: "dry", Count: 2}, {At: now.Add(-freshError - 1), Operation: "ADD", Cause: "internal", Message: "old", Count: 1},
			}}}, "pool-dry", []string{"warning pool-dry ADD: dry (2 times)", "info internal ADD: old"},
		},
		"a lack of addresses ends with the first free one": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{Cards: card(27, 20, 6, 1, 27), WaitingADDs: new(0), LastErrors: []introspect.LastError{
				{At: now, Operation: "ADD", Cause: "addresses-cooling", Message: "a", Count: 1}, {At: now, Operation: "ADD", Cause: "pool-full", Message: "b", Count: 1}, {At: now, Operation: "ADD", Cause: "pool-dry", Message: "c", Count: 1},
			}}}, "ok", []string{"info addresses-cooling ADD: a", "info pool-full ADD: b", "info pool-dry ADD: c"},
		},
		"a free address does not end other trouble": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{Cards: card(27, 20, 6, 1, 27), LastErrors: []introspect.LastError{
				{At: now.Add(time.Second), Operation: "ADD", Cause: "internal", Message: "a", Count: 1},
			}}}, "internal", []string{"warning internal ADD: a"},
		},
		"errors before ADDs that wait": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{Cards: card(9, 3, 1, 5, 27), WaitingADDs: new(1), LastErrors: []introspect.LastError{
				{At: now.Add(-freshWhileWaiting), Operation: "ADD", Cause: "pool-dry", Message: "a", Count: 1}, {At: now.Add(-freshWhileWaiting - 1), Operation: "ADD", Cause: "pool-dry", Message: "b", Count: 1},
			}}}, "1 waiting", []string{"error pool-dry 1 ADD waits for an address", "warning pool-dry ADD: a", "info pool-dry ADD: b"},
		},
		"while a call is in flight for ADDs that wait, the last error says why": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{WaitingADDs: new(1), WaitingSince: ago(catalogue.SandboxTime), LastErrors: []introspect.LastError{
				{At: now, Operation: "release", Cause: "ec2-throttled", Message: "a", Count: 1}, {At: now, Operation: "ADD", Cause: "internal", Message: "b", Count: 1},
				{At: now, Operation: "assign", Cause: "ec2-throttled", Message: "c", Count: 3}, {At: now, Operation: "attach", Cause: "subnet-exhausted", Message: "d", Count: 1},
			}}}, "1 waiting", []string{
				"error ec2-throttled assign: c (3 times)", "error subnet-exhausted attach: d", "error pool-dry 1 ADD waits for an address",
				"warning ec2-throttled release: a", "warning internal ADD: b",
			},
		},
		"an ADD that waits for an interface is not held up by the last error": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{WaitingADDs: new(1), WaitingSince: ago(catalogue.SandboxTime - 1), LastErrors: []introspect.LastError{
				{At: now, Operation: "assign", Cause: "ec2-throttled", Message: "a", Count: 1},
			}}}, "1 waiting", []string{"warning ec2-throttled assign: a", "info pool-dry 1 ADD waits for an address"},
		},
		"ADDs that wait for a full pool wait for no call": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{WaitingADDs: new(1), Cards: card(27, 27, 0, 0, 27), LastErrors: []introspect.LastError{
				{At: now, Operation: "attach", Cause: "ec2-throttled", Message: "a", Count: 1},
			}}}, "1 waiting", []string{
				"error pool-dry 1 ADD waits for an address", "warning pool-full all 27 addresses in use, the node's limit", "warning ec2-throttled attach: a",
			},
		},
		"a subnet that has room again is no error": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{WaitingADDs: new(1), Subnets: []introspect.Subnet{{ID: "subnet-1", Available: new(9)}}, LastErrors: []introspect.LastError{
				{At: now, Operation: "assign", Cause: "subnet-exhausted", Message: "a", Count: 1},
			}}}, "1 waiting", []string{"error pool-dry 1 ADD waits for an address", "warning subnet-exhausted assign: a"},
		},
		"a pod waits too long for its branch ENI": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{Trunk: &introspect.Trunk{
				ENIID: "eni-t", BranchWaiting: new(1), WaitingSince: ago(catalogue.BranchTime + 1),
			}}}, "branch-pending", []string{"error branch-pending 1 pod waits for a branch ENI"},
		},
		"pods whose branch ENIs are about to come": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{Trunk: &introspect.Trunk{
				ENIID: "eni-t", BranchWaiting: new(2), WaitingSince: ago(catalogue.BranchTime),
			}}}, "ok", []string{"info branch-pending 2 pods wait for a branch ENI"},
		},
		"without a trunk no branch ENI is waited for": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{Trunk: &introspect.Trunk{BranchWaiting: new(1), WaitingSince: ago(time.Hour)}}}, "ok", nil,
		},
		"max-pods over": {
			document.NodeIPAM{Summary: &introspect.Summary{MaxPods: &introspect.MaxPods{Value: new(110), TotalCapacity: new(29), Verdict: introspect.MaxPodsOver}}},
			"max-pods-over", []string{"warning max-pods-over max-pods is 110, but there are addresses for only 29 pods"},
		},
		"max-pods under is news, not a state": {
			document.NodeIPAM{Summary: &introspect.Summary{MaxPods: &introspect.MaxPods{Value: new(17), TotalCapacity: new(29), Verdict: introspect.MaxPodsUnder}}},
			"ok", []string{"info max-pods-under max-pods 17 leaves 12 of 29 possible pods unused"},
		},
		"max-pods at risk stands beside the verdict, and is news": {
			document.NodeIPAM{Summary: &introspect.Summary{MaxPods: &introspect.MaxPods{Value: new(29), TotalCapacity: new(29), Verdict: introspect.MaxPodsOK, AtRisk: 9}}},
			"ok", []string{"info max-pods-at-risk max-pods 29 counts branch ENIs: 9 pods without one may get no address"},
		},
		"EC2 takes less than the type": {
			document.NodeIPAM{SampledAt: &now, Summary: &introspect.Summary{Cards: []introspect.CardSummary{
				{Total: 18, Free: 18, StatedENILimit: &introspect.StatedLimit{Limit: 2, OfType: 3}, StatedSlots: &introspect.StatedLimit{Limit: 9, OfType: 14}},
				{Card: 1, Total: 9, Free: 9, StatedSlots: &introspect.StatedLimit{Limit: 9, OfType: 14}},
			}}}, "stated-limit", []string{
				"warning stated-limit EC2 refuses more than 2 network interfaces on card 0, the instance type has 3",
				"warning stated-limit EC2 refuses more than 9 addresses or prefixes per network interface, the instance type has 14",
			},
		},
		"settings, unplaced, cordoned": {
			document.NodeIPAM{Summary: &introspect.Summary{ConfigProblems: new(2), Unplaced: new(1), Cordoned: new(true), Terminating: new(false)}}, "unplaced-assignment",
			[]string{"warning unplaced-assignment 1 pod address is on no known ENI", "warning config 2 settings have problems: see node config", "info cordoned cordoned"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range Problems(tt.node) {
				got = append(got, string(p.Severity)+" "+p.Code+" "+p.Message)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if word := Word(tt.node); word != tt.word {
				t.Errorf("word %q, want %q", word, tt.word)
			}
		})
	}
}

// TestStatusCode: a machine-readable word, whatever STATUS shows to people.
func TestStatusCode(t *testing.T) {
	t.Parallel()
	waiting := 3
	refused := &document.NodeError{Reason: introspect.ReasonRefused, Message: "connection refused"}
	for want, n := range map[string]document.NodeIPAM{
		CodeOK:         {State: document.StateLive, Summary: &introspect.Summary{}},
		"pool-dry":     {State: document.StateLive, Summary: &introspect.Summary{WaitingADDs: &waiting}},
		CodeCordoned:   {State: document.StateLive, Summary: &introspect.Summary{Cordoned: new(true)}},
		"unreachable":  {State: document.StateUnreachable, Error: refused},
		"stale":        {State: document.StateStale, Summary: &introspect.Summary{WaitingADDs: &waiting}, Error: refused},
		"metrics-only": {State: document.StateMetricsOnly, Summary: &introspect.Summary{}, Error: refused},
		"partly-read":  {State: document.StateLive, Summary: &introspect.Summary{}, Error: refused},
		CodeUnread:     {State: document.StateAPIOnly},
		CodeNoDaemon:   {State: document.StateNoDaemon},
	} {
		if got := StatusCode(n, Problems(n)); got != want {
			t.Errorf("%+v: %q, want %q", n, got, want)
		}
	}
}
