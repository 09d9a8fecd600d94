package pod

import (
	"errors"
	"strings"
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
)

// TestRecorded: a pod is found by its address. If the addresses of a node were not
// recorded, the pod may be there, which is a different error from not being found.
func TestRecorded(t *testing.T) {
	t.Parallel()
	ref := introspect.PodRef{Namespace: "shop", Name: "cart-1"}
	node := func(name string, pod *introspect.PodRef) fleet.Target {
		n := document.NodeIPAM{Metadata: document.ObjectMeta{Name: name}, Summary: &introspect.Summary{}}
		if pod != nil {
			n.ENIs = []introspect.NodeENI{{ID: "eni-1", CIDRs: []introspect.NodeCIDR{{Addresses: []introspect.NodeAddress{
				{State: introspect.AddressAssigned, PodNamespace: pod.Namespace, PodName: pod.Name},
			}}}}}
		}
		return fleet.Target{Name: name, Via: document.ViaRecord, Sample: &n, Absent: &document.NodeError{Reason: introspect.ReasonNotServed, Message: "not recorded"}}
	}
	f := &cli.Factory{Name: "cnictl", Now: fleettest.Now}
	for name, row := range map[string]struct {
		targets []fleet.Target
		on      string
		code    int
		why     string
	}{
		"there":    {targets: []fleet.Target{node("a", nil), node("b", &ref)}, on: "b"},
		"nowhere":  {targets: []fleet.Target{node("a", &introspect.PodRef{Namespace: "shop", Name: "cart-11"})}, code: cli.ExitNotFound, why: "none of 1 node held"},
		"may be":   {targets: []fleet.Target{node("a", nil), node("b", &introspect.PodRef{Namespace: "other", Name: "cart-1"})}, code: cli.ExitPartial, why: "the addresses of 1 of 2 nodes are not included"},
		"no pools": {targets: []fleet.Target{node("a", nil)}, code: cli.ExitPartial, why: "the addresses of 1 of 1 node are not included"},
	} {
		nodes, err := fleet.New(fleet.Options{Targets: row.targets, Now: fleettest.Now})
		if err != nil {
			t.Fatal(err)
		}
		in, err := Evidence{Pod: ref}.recorded(t.Context(), f, nodes)
		nodes.Close()
		var e *cli.Error
		switch {
		case row.code == 0 && (err != nil || in.Node != row.on || len(in.Interfaces) != 1):
			t.Errorf("%s: %+v, %v", name, in, err)
		case row.code != 0 && (!errors.As(err, &e) || e.Code != row.code || !strings.Contains(e.Why, row.why)):
			t.Errorf("%s: %v, want code %d with %q", name, err, row.code, row.why)
		}
	}
}
