package e2e_test

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnictl/testenv/fakeaws"
)

// TestModes_CustomNetworking: new ENIs are made as the node's ENIConfig says, also after
// it was changed, and the primary ENI gives pods no address.
func TestModes_CustomNetworking(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	vpcID := c.subnet.VPCID
	podSubnet, err := c.world.AddSubnet(fakeaws.SubnetSpec{VPCID: vpcID, CIDR: netip.MustParsePrefix("10.1.32.0/20")})
	if err != nil {
		t.Fatal(err)
	}
	otherSubnet, err := c.world.AddSubnet(fakeaws.SubnetSpec{VPCID: vpcID, CIDR: netip.MustParsePrefix("10.1.64.0/20")})
	if err != nil {
		t.Fatal(err)
	}
	name := c.namespace
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"}, func(n *corev1.Node) { n.Annotations = map[string]string{"k8s.amazonaws.com/eniConfig": name} })
	m.start(map[string]string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true", "WARM_IP_TARGET": "1"})

	// Without the ENIConfig the ADD says what is missing.
	first := m.bind("first")
	if r := m.add(first); r.Success || r.Cause != "eniconfig-missing" {
		t.Fatalf("without an ENIConfig: %+v", r)
	}
	c.eniConfig(name, podSubnet.ID)
	c.until("an ENI in the ENIConfig's subnet", func() bool { return len(c.enisIn(m, podSubnet.ID)) == 1 })
	if r := m.add(first); !r.Success || !podSubnet.CIDR.Contains(netip.MustParseAddr(r.Allocations[0].IPv4)) {
		t.Fatalf("with the ENIConfig: %+v", r)
	}
	c.eniConfig(name, otherSubnet.ID)
	c.until("the next ENI in the changed subnet", func() bool {
		if r := m.addMore(); !r.Success {
			t.Fatalf("%+v", r)
		}
		return len(c.enisIn(m, otherSubnet.ID)) == 1
	})
}

// enisIn lists the ENIs of a member in a subnet.
func (c *cluster) enisIn(m *member, subnet string) []fakeaws.ENI {
	return slices.DeleteFunc(c.world.ENIsOf(m.InstanceID), func(e fakeaws.ENI) bool { return e.SubnetID != subnet })
}
