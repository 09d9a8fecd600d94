package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

func TestSweepOf(t *testing.T) {
	t.Parallel()
	read := func(latency float64) document.NodeIPAM {
		return document.NodeIPAM{State: document.StateLive, Summary: &introspect.Summary{}, LatencySeconds: &latency}
	}
	failed := func(state document.State, r introspect.Reason) document.NodeIPAM {
		return document.NodeIPAM{State: state, Error: &document.NodeError{Reason: r}}
	}
	var hundred []document.NodeIPAM
	for i := range 100 {
		hundred = append(hundred, read(float64(100-i)/100))
	}
	for name, tt := range map[string]struct {
		items []document.NodeIPAM
		want  document.SweepStats
	}{
		"none":    {nil, document.SweepStats{FailedBy: []document.ReasonCount{}}},
		"one":     {[]document.NodeIPAM{read(0.2)}, document.SweepStats{Nodes: 1, Read: 1, FailedBy: []document.ReasonCount{}, LatencyP50Seconds: ptr(0.2), LatencyP99Seconds: ptr(0.2)}},
		"hundred": {hundred, document.SweepStats{Nodes: 100, Read: 100, FailedBy: []document.ReasonCount{}, LatencyP50Seconds: ptr(0.5), LatencyP99Seconds: ptr(0.99)}},
		"failed": {
			[]document.NodeIPAM{
				failed(document.StateUnreachable, introspect.ReasonTimeout), failed(document.StateUnreachable, introspect.ReasonNotJSON),
				failed(document.StateForbidden, introspect.ReasonForbidden), failed(document.StateUnreachable, introspect.ReasonTimeout),
				{State: document.StateNoDaemon, Error: &document.NodeError{Reason: introspect.ReasonNoPod}, Object: &document.NodeObject{OS: "windows"}},
				{State: document.StateAPIOnly},
			},
			document.SweepStats{Nodes: 6, Failed: 4, FailedBy: []document.ReasonCount{
				{Reason: introspect.ReasonTimeout, Nodes: 2}, {Reason: introspect.ReasonForbidden, Nodes: 1}, {Reason: introspect.ReasonNotJSON, Nodes: 1},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, sweepOf(tt.items, nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
