package status

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
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
			if diff := cmp.Diff(tt.want, of(tt.items).Sweep); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// of is Of for nodes that were just read; each gets a name.
func of(items []document.NodeIPAM) document.FleetStatus {
	named := slices.Clone(items)
	for i := range named {
		if named[i].Metadata.Name == "" {
			named[i].Metadata.Name = fmt.Sprint("n", i)
		}
	}
	return Of(store.Of(named), document.NodeIPAMList{Items: named}, nil)
}

func TestOf_UnknownStaysUnknown(t *testing.T) {
	t.Parallel()
	known := document.NodeIPAM{State: document.StateLive, Summary: &introspect.Summary{
		Cards: []introspect.CardSummary{{ENIs: new(2), ENILimit: new(3), AddressLimit: new(27), Total: 18, Assigned: 7, Cooling: new(2), Free: 9}},
		ADDs:  &introspect.RequestCounts{Total: 5, Failed: new(1)}, DELs: &introspect.RequestCounts{}, WaitingADDs: new(0), EC2Calls: []introspect.EC2Calls{{Calls: 4, Errors: 2}, {Calls: 1}},
	}}
	original := document.NodeIPAM{State: document.StateLive, Summary: &introspect.Summary{Cards: []introspect.CardSummary{{ENIs: new(1), Cooling: new(0), Total: 9, Free: 9}}}}
	gone := document.NodeIPAM{State: document.StateUnreachable, Error: &document.NodeError{}}
	one := of([]document.NodeIPAM{known})
	if *one.Addresses.Limit != 27 || *one.ENIs.Limit != 3 || *one.Activity.EC2Calls != 5 || *one.Activity.EC2Errors != 2 || *one.Activity.FailedADDs != 1 {
		t.Errorf("one node: %+v", one)
	}
	all := of([]document.NodeIPAM{known, original, gone})
	want := document.Addresses{Total: new(27), Assigned: new(7), Cooling: new(2), Free: new(18)}
	if diff := cmp.Diff(want, all.Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if all.Nodes != (document.NodeCounts{Total: 3, Live: 2, Unreachable: 1}) || all.ENIs.Limit != nil || *all.Activity.ADDs != 5 {
		t.Errorf("status %+v", all)
	}
	fargate := document.NodeIPAM{State: document.StateNoDaemon}
	for name, tt := range map[string]struct {
		items   []document.NodeIPAM
		partial bool
		nodes   int
	}{
		"all report": {[]document.NodeIPAM{known, known, fargate}, false, 2}, "upstream reports none": {[]document.NodeIPAM{known, original}, true, 1},
		"one was not read": {[]document.NodeIPAM{known, gone}, true, 1}, "none": {nil, false, 0},
	} {
		if a := of(tt.items).Activity; a.Partial != tt.partial || a.Nodes != tt.nodes {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if none := of([]document.NodeIPAM{original}); none.Activity.ADDs != nil || none.Activity.WaitingADDs != nil {
		t.Errorf("no counter: %+v", none.Activity)
	}
}
