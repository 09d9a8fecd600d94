package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
)

func TestSweepOf(t *testing.T) {
	t.Parallel()
	read := func(latency float64) introspect.NodeIPAM {
		return introspect.NodeIPAM{State: introspect.StateLive, Summary: &introspect.Summary{}, LatencySeconds: &latency}
	}
	failed := func(state introspect.State, r introspect.Reason) introspect.NodeIPAM {
		return introspect.NodeIPAM{State: state, Error: &introspect.NodeError{Reason: r}}
	}
	var hundred []introspect.NodeIPAM
	for i := range 100 {
		hundred = append(hundred, read(float64(100-i)/100))
	}
	for name, tt := range map[string]struct {
		items []introspect.NodeIPAM
		want  introspect.SweepStats
	}{
		"none":    {nil, introspect.SweepStats{FailedBy: []introspect.ReasonCount{}}},
		"one":     {[]introspect.NodeIPAM{read(0.2)}, introspect.SweepStats{Nodes: 1, Read: 1, FailedBy: []introspect.ReasonCount{}, LatencyP50Seconds: ptr(0.2), LatencyP99Seconds: ptr(0.2)}},
		"hundred": {hundred, introspect.SweepStats{Nodes: 100, Read: 100, FailedBy: []introspect.ReasonCount{}, LatencyP50Seconds: ptr(0.5), LatencyP99Seconds: ptr(0.99)}},
		"failed": {
			[]introspect.NodeIPAM{
				failed(introspect.StateUnreachable, introspect.ReasonTimeout), failed(introspect.StateUnreachable, introspect.ReasonNotJSON),
				failed(introspect.StateForbidden, introspect.ReasonForbidden), failed(introspect.StateUnreachable, introspect.ReasonTimeout),
				{State: introspect.StateNoDaemon, Error: &introspect.NodeError{Reason: introspect.ReasonNoPod}, Object: &introspect.NodeObject{OS: "windows"}},
				{State: introspect.StateAPIOnly},
			},
			introspect.SweepStats{Nodes: 6, Failed: 4, FailedBy: []introspect.ReasonCount{
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
