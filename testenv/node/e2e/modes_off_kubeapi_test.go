package e2e_test

import (
	"net/netip"
	"slices"
	"testing"

	"cnictl/capacity/limits"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// TestModes_ProvisioningOff: the daemon changes nothing in EC2, and assigns addresses of
// ENIs that others attached, before or after its start.
func TestModes_ProvisioningOff(t *testing.T) {
	t.Parallel()
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.attachForeign(m, 1, 2)
	m.start(map[string]string{"DISABLE_NETWORK_RESOURCE_PROVISIONING": "true"})
	c.servesWhatIsThere(m)
	if did := c.changed(); len(did) > 0 {
		t.Errorf("EC2 was changed: %v", did)
	}
}

// TestModes_IMDSOnly does the same without any request to EC2, and on an unknown instance
// type.
func TestModes_IMDSOnly(t *testing.T) {
	t.Parallel()
	unknown := limits.Instance{
		Type: "m99.large", MaxENIs: 3, IPv4PerENI: 10, IPv6PerENI: 10, Cards: []limits.Card{{MaxENIs: 3}}, Hypervisor: "nitro",
	}
	c := newCluster(t, fakeaws.Options{Types: []limits.Instance{unknown}})
	m := c.join(fakeaws.InstanceSpec{Type: unknown.Type})
	c.attachForeign(m, 1, 2)
	m.start(map[string]string{"ENABLE_IMDS_ONLY_MODE": "true"})
	c.servesWhatIsThere(m)
	if calls := c.world.Calls(); len(calls) > 0 {
		t.Errorf("EC2 was asked: %+v", calls)
	}
}

// attachForeign attaches an ENI that the daemon did not create.
func (c *cluster) attachForeign(m *member, device, addresses int) fakeaws.ENI {
	c.t.Helper()
	e, err := c.world.CreateENI(fakeaws.ENISpec{SubnetID: c.subnet.ID, IPs: addresses})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: m.InstanceID, Device: device, DeleteOnTermination: true}); err != nil {
		c.t.Fatal(err)
	}
	e, _ = c.world.ENI(e.ID)
	return e
}

// servesWhatIsThere uses up two addresses of the second ENI, then the addresses and the ENI
// that the test adds.
func (c *cluster) servesWhatIsThere(m *member) {
	c.t.Helper()
	second := m.enis()[1]
	added, err := c.world.Assign(second.ID, fakeaws.AssignSpec{Count: 1})
	if err != nil {
		c.t.Fatal(err)
	}
	third := c.attachForeign(m, 2, 1)
	pods := m.run("early", 2)
	// The daemon gets the other two at its next resync.
	pods = append(pods, m.awaitPod("late-0", "provisioning-disabled"), m.awaitPod("late-1", "provisioning-disabled"))
	m.owned(pods...)
	want := append(slices.Clone(second.SecondaryIPs), added[0].Addr(), third.SecondaryIPs[0])
	var got []netip.Addr
	for _, p := range pods {
		got = append(got, p.IP)
	}
	slices.SortFunc(want, netip.Addr.Compare)
	slices.SortFunc(got, netip.Addr.Compare)
	if !slices.Equal(got, want) {
		c.t.Errorf("pods have %v, want %v", got, want)
	}
	if first, last := pods[0], pods[3]; c.t.Failed() || first.Ping(last.IP, testenv.Left(c.t)) != nil {
		c.t.Errorf("%v does not reach %v", first.IP, last.IP)
	}
	m.remove(pods...)
	c.nothingLeft(m.Node)
	if now, _ := c.world.ENI(second.ID); len(now.SecondaryIPs) != 3 {
		c.t.Errorf("the ENI has %v", now.SecondaryIPs)
	}
}
