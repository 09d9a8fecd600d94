package e2e_test

import (
	"net/netip"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// TestModes_SubnetDiscovery checks in which subnet a new ENI is created, depending on the tags of
// the VPC's subnets and the cluster's name.
func TestModes_SubnetDiscovery(t *testing.T) {
	t.Parallel()
	const role, cluster = "kubernetes.io/role/cni", "cni.networking.k8s.aws/cluster/"
	type row struct {
		own, other map[string]string // tags
		elsewhere  bool              // the other subnet is in another zone
		env        []string
		want       string // "own", "other", "none"
		primary    bool   // may pods have addresses of the primary ENI
	}
	named := []string{"CLUSTER_NAME=blue"}
	rows := map[string]row{
		"no tags":                 {want: "own", primary: true},
		"tagged, more addresses":  {other: map[string]string{role: "1"}, want: "other", primary: true},
		"tagged for this cluster": {other: map[string]string{role: "1", cluster + "blue": "shared"}, env: named, want: "other", primary: true},
		"tagged for another":      {other: map[string]string{role: "1", cluster + "green": "shared"}, env: named, want: "own", primary: true},
		"for both":                {other: map[string]string{role: "1", cluster + "green": "", cluster + "blue": ""}, env: named, want: "other", primary: true},
		"this node has no name":   {other: map[string]string{role: "1", cluster + "green": "shared"}, want: "other", primary: true},
		"excluded":                {other: map[string]string{role: "0"}, want: "own", primary: true},
		"another zone":            {other: map[string]string{role: "1"}, elsewhere: true, want: "own", primary: true},
		"own excluded":            {own: map[string]string{role: "0"}, other: map[string]string{role: "1"}, want: "other"},
		"own for another cluster": {own: map[string]string{role: "1", cluster + "green": ""}, other: map[string]string{role: "1"}, env: named, want: "other"},
		"none":                    {own: map[string]string{role: "0"}, other: map[string]string{}, want: "none"},
		"off":                     {other: map[string]string{role: "1"}, env: []string{"ENABLE_SUBNET_DISCOVERY=false"}, want: "own", primary: true},
		"off, own excluded":       {own: map[string]string{role: "0"}, other: map[string]string{role: "1"}, env: []string{"ENABLE_SUBNET_DISCOVERY=false"}, want: "none"},
	}
	rowsAtOnce(t, rows, func(t *testing.T, r row) {
		c := newCluster(t, fakeaws.Options{})
		if err := c.world.SetTags(r.own, c.subnet.ID); err != nil && len(r.own) > 0 {
			t.Fatal(err)
		}
		spec := fakeaws.SubnetSpec{CIDR: netip.MustParsePrefix("10.1.64.0/19"), Tags: r.other}
		if r.elsewhere {
			spec.AZ = "us-west-2b"
		}
		subnets := map[string]fakeaws.Subnet{"own": c.subnet, "other": c.addSubnet(spec)}
		m := c.join(fakeaws.InstanceSpec{Type: "t3.small"})
		// The primary ENI already has addresses: pods do not get them if its subnet is excluded.
		if _, err := c.world.Assign(m.enis()[0].ID, fakeaws.AssignSpec{Count: 3}); err != nil {
			t.Fatal(err)
		}
		m.start(with(map[string]string{"WARM_IP_TARGET": "4", "CNI_ADD_WAIT": "3s"}, r.env...))
		if r.want == "none" {
			if got := m.addMore(); got.Success || got.Cause != "no-usable-subnet" || got.Transient {
				t.Errorf("got %+v", got)
			}
			if n := len(m.enis()); n != 1 {
				t.Errorf("%d ENIs", n)
			}
			return
		}
		testenv.Eventually(c.t, "a second ENI", func() bool { return len(m.enis()) > 1 })
		if e := m.enis()[1]; e.SubnetID != subnets[r.want].ID {
			t.Errorf("the ENI is in %s, want %s", e.SubnetID, subnets[r.want].ID)
		}
		for range 4 {
			got := m.addMore()
			if !got.Success {
				t.Fatalf("%+v", got)
			}
			on := m.owner(netip.MustParseAddr(got.Allocations[0].IPv4))
			if on.Primary() && !r.primary {
				t.Errorf("a pod on the primary ENI: %+v", got)
			}
		}
		if !r.primary {
			testenv.Eventually(c.t, "the excluded addresses given back", func() bool { return len(m.enis()[0].SecondaryIPs) == 0 })
		}
	})
}
