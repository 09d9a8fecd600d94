package causes

import (
	"fmt"
	"testing"

	"cnictl/capacity/capacitytest"
	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/doctor/evidence"
)

// asRead returns a node as the doctor reads it.
func asRead(n capacitytest.Node) *Case {
	r := &evidence.Reading{}
	t := evidence.InstanceType{
		InstanceType: n.Type, Known: true, MaxENIs: &n.MaxENIs, IPv4PerENI: &n.IPv4PerENI, Hypervisor: n.Hypervisor, BareMetal: &n.BareMetal,
	}
	if n.TrunkingCompatible != limits.Unknown {
		t.Trunk = new(n.TrunkingCompatible == limits.Yes)
	}
	r.InstanceType = evidence.Read(t)
	enis := []evidence.ENI{{ID: "eni-primary", Primary: true, Excluded: n.PrimaryExcluded}}
	for i := range n.FurtherExcluded() {
		enis = append(enis, evidence.ENI{ID: fmt.Sprint("eni-excluded-", i), Excluded: true})
	}
	if n.TrunkAttached {
		enis = append(enis, evidence.ENI{ID: "eni-trunk", Trunk: true})
	}
	r.ENIs = evidence.Read(enis)
	var imds evidence.IMDS
	for i := range n.UnmanagedENIs {
		imds.ENIs = append(imds.ENIs, evidence.IMDSInterface{ID: fmt.Sprint("eni-other-", i)})
	}
	r.IMDS = evidence.Read(imds)
	card := introspect.CardSummary{}
	if n.StatedENIs > 0 {
		card.StatedENILimit, card.StatedSlots = &introspect.StatedLimit{Limit: n.StatedENIs}, &introspect.StatedLimit{Limit: n.StatedSlots}
	}
	r.Summary = evidence.Read(introspect.Summary{Cards: []introspect.CardSummary{card}})
	c := &Case{R: r, settingsAt: "k8s.ds", logs: map[string]*logSource{}}
	c.Settings.MaxENI, c.Settings.PodENI = n.MaxENI, n.PodENI
	c.Settings.CustomNetworking, c.Settings.PrefixDelegation = n.CustomNetworking, n.Input.PrefixDelegation
	return c
}

// TestSameCapacity: the doctor counts the same addresses as max-pods, for every type with every
// setting.
func TestSameCapacity(t *testing.T) {
	t.Parallel()
	for n := range capacitytest.Nodes {
		c := asRead(n)
		if got, want := c.pools()[0].capacity, maxpods.Compute(n.Input).PodIPs; got != want {
			t.Fatalf("%s: the doctor %d, max-pods %d", n, got, want)
		}
		n.UnmanagedENIs, n.ExcludedENIs, n.PrimaryExcluded = 0, 0, false
		if got, want := c.pools()[0].designed, maxpods.Compute(n.Input).PodIPs; got != want {
			t.Fatalf("%s: by settings alone the doctor %d, max-pods %d", n, got, want)
		}
	}
}
