//go:build nightly

package e2e_test

import (
	"net/netip"
	"testing"

	"cnictl/capacity/limits"
	"cnictl/testenv/aws/fakeaws"
)

// TestIAM_IPv6 is TestIAM_EachActionIsNeeded for IPv6 nodes. Pods have addresses of the primary
// ENI's /80; actions for further ENIs are needed if the primary one's subnet is excluded.
func TestIAM_IPv6(t *testing.T) {
	t.Parallel()
	everyAction(t, "aws-node-ipv6", map[string]permissionRow{
		"ec2:AssignIpv6Addresses":             {scene: ipv6Scene, dry: true},
		"ec2:CreateNetworkInterface":          {scene: excludedScene, dry: true},
		"ec2:CreateTags":                      {scene: excludedScene, dry: true},
		"ec2:AttachNetworkInterface":          {scene: excludedScene, dry: true},
		"ec2:ModifyNetworkInterfaceAttribute": {scene: excludedScene, fixed: (*member).endsWithInstance},
		"ec2:DescribeNetworkInterfaces":       {scene: ipv6Scene, fatal: true},
		"ec2:DescribeInstanceTypes":           {scene: ipv6Scene, fatal: true, instance: untabled.Type},
		"ec2:DescribeSubnets":                 {scene: ipv6Scene, later: true},
		"ec2:UnassignIpv6Addresses":           {scene: excludedScene, before: (*member).holds6, fixed: (*member).freed6},
		"ec2:DetachNetworkInterface":          {scene: excludedScene, before: (*member).cannotSetUp, provoke: (*member).asked, once: true},
		"ec2:DeleteNetworkInterface":          {scene: excludedScene, before: (*member).cannotAttach, provoke: (*member).asked},
	})
}

// ipv6Scene is a cluster with a dual-stack subnet, and an instance to join in it.
func ipv6Scene(t *testing.T) (*cluster, fakeaws.InstanceSpec) { return scene6(t, nil) }

// excludedScene is one whose subnet is excluded for pods; another subnet is not.
func excludedScene(t *testing.T) (*cluster, fakeaws.InstanceSpec) {
	const role = "kubernetes.io/role/cni"
	c, spec := scene6(t, map[string]string{role: "0"})
	own, _ := c.world.Subnet(spec.SubnetID)
	if _, err := c.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: own.VPCID, CIDR: netip.MustParsePrefix("10.2.16.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1:3::/64"),
		Tags: map[string]string{role: "1"},
	}); err != nil {
		t.Fatal(err)
	}
	return c, spec
}

func scene6(t *testing.T, tags map[string]string) (*cluster, fakeaws.InstanceSpec) {
	t.Helper()
	c := newCluster(t, fakeaws.Options{Types: []limits.Instance{untabled}})
	v := c.world.AddVPC(netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	s, err := c.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: v.ID, CIDR: netip.MustParsePrefix("10.2.0.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1:2::/64"), Tags: tags,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, fakeaws.InstanceSpec{SubnetID: s.ID, IPv6: true}
}

// holds6 assigns a /80 to the primary ENI.
func (m *member) holds6() {
	m.c.t.Helper()
	if _, err := m.c.world.Assign(m.enis()[0].ID, fakeaws.AssignSpec{IPv6Prefixes: 1}); err != nil {
		m.c.t.Fatal(err)
	}
}

// freed6 reports whether the primary ENI's /80 was released.
func (m *member) freed6() bool { return len(m.enis()[0].IPv6Prefixes) == 0 }

// cannotSetUp keeps the links of new ENIs away, so that they must be detached again.
func (m *member) cannotSetUp() {
	m.c.t.Helper()
	m.c.breakEC2(fakeaws.Rule{Action: "AttachNetworkInterface", Fault: fakeaws.Fault{Hold: fakeaws.HoldLink}})
}

// cannotAttach makes EC2 refuse to attach ENIs, for a reason other than a permission, so that
// they must be deleted again.
func (m *member) cannotAttach() {
	m.c.t.Helper()
	m.c.breakEC2(fakeaws.Rule{
		Action: "AttachNetworkInterface",
		Fault:  fakeaws.Fault{Code: "InvalidParameterValue", Message: "not now"},
	})
}

// asked adds a pod, which may or may not get an address.
func (m *member) asked() { _ = m.addMore() }
