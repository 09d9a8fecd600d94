package vpcapi_test

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/testenv/aws/fakeaws"
)

var block6 = netip.MustParsePrefix("2001:db8:0:2::/64")

// dualStack adds a dual-stack subnet with an instance for the client.
func dualStack(t *testing.T) *node {
	t.Helper()
	n := newNode(t, setup{})
	s, err := n.world.AddSubnet(fakeaws.SubnetSpec{VPCID: n.instance.VPCID, CIDR: netip.MustParsePrefix("10.0.2.0/24"), IPv6CIDR: block6})
	if err != nil {
		t.Fatal(err)
	}
	n.subnet = s
	return n
}

// An ENI is created with an IPv6 address, even if the subnet assigns none by itself; /80s
// are assigned, described, and released.
func TestIPv6_Prefixes(t *testing.T) {
	t.Parallel()
	n := dualStack(t)
	ctx := t.Context()
	subnets, err := n.DescribeSubnets(ctx)
	if err != nil || !slices.ContainsFunc(subnets, func(s vpcapi.Subnet) bool { return s.ID == n.subnet.ID && s.IPv6CIDR == block6 }) {
		t.Fatalf("subnets %+v, %v", subnets, err)
	}
	made := n.create(vpcapi.CreateENI{IPv6: true})
	if len(made.IPv6Prefixes) != 0 || len(made.IPv6s) != 1 || !made.PrimaryIP.Is4() {
		t.Fatalf("made %+v", made)
	}
	if _, err := n.AttachENI(ctx, made.ID, 0, 1); err != nil {
		t.Fatal(err)
	}
	var given []netip.Prefix
	for range 2 {
		p, err := n.AssignIPv6Prefix(ctx, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, p)
		if p.Bits() != 80 || p.Masked() != p || !block6.Contains(p.Addr()) {
			t.Errorf("prefix %s", p)
		}
	}
	got, err := n.DescribeENIs(ctx, []ipam.ENIID{made.ID})
	if err != nil || len(got) != 1 || !slices.Equal(got[0].IPv6Prefixes, given) || !slices.Equal(got[0].IPv6s, made.IPv6s) {
		t.Errorf("described %+v, %v", got, err)
	}
	if err := n.Unassign(ctx, made.ID, append(given, netip.PrefixFrom(made.IPv6s[0], 128))); err != nil {
		t.Error(err)
	}
	if e, _ := n.world.ENI(string(made.ID)); len(e.IPv6Prefixes)+len(e.IPv6s) != 0 {
		t.Errorf("after giving back it has %v and %v", e.IPv6Prefixes, e.IPv6s)
	}
	if _, err := n.AssignIPv6Prefix(ctx, ipam.ENIID(n.instance.PrimaryENI)); err == nil {
		t.Error("a subnet without IPv6 gave a /80")
	}
}

// IPv6-only subnets are not offered, and an ENI in one is refused before it is created; if
// the family was unknown then, the error names what was created.
func TestIPv6Only_Refused(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	only, err := n.world.AddSubnet(fakeaws.SubnetSpec{VPCID: n.instance.VPCID, IPv6CIDR: netip.MustParsePrefix("2001:db8:0:6::/64")})
	if err != nil {
		t.Fatal(err)
	}
	create := func() error {
		_, err := n.CreateENI(t.Context(), vpcapi.CreateENI{SubnetID: only.ID, IPv6: true})
		return err
	}
	var refused *vpcapi.IPv6OnlyError
	if err := create(); !errors.As(err, &refused) || refused.Made == "" || !vpcapi.IsUnanswered(err) {
		t.Errorf("before the subnets are known: %v", err)
	}
	made := len(n.world.ENIs())
	subnets, err := n.DescribeSubnets(t.Context())
	if err != nil || len(subnets) != 1 || subnets[0].ID != n.subnet.ID {
		t.Errorf("offered %+v, %v", subnets, err)
	}
	if err := create(); !errors.As(err, &refused) || refused.Made != "" || vpcapi.IsUnanswered(err) || vpcapi.Cause(err) != cause.NoUsableSubnet {
		t.Errorf("when they are known: %v", err)
	}
	if got := len(n.world.ENIs()); got != made {
		t.Errorf("%d ENIs more", got-made)
	}
}

// Each fault of an ENIConfig has its own error.
func TestErrors_ENIConfig(t *testing.T) {
	t.Parallel()
	type verdict struct{ NoSubnet, NoGroup, OtherZone bool }
	of := func(err error) verdict {
		return verdict{vpcapi.IsNoSubnet(err), vpcapi.IsNoSecurityGroup(err), vpcapi.IsOtherZone(err)}
	}
	for _, row := range []struct {
		name    string
		provoke func(n *node) error
		want    verdict
	}{
		{"subnet that is not there", func(n *node) error {
			_, err := n.CreateENI(t.Context(), vpcapi.CreateENI{SubnetID: "subnet-0fa4e00000000dead"})
			return err
		}, verdict{NoSubnet: true}},
		{"group that is not there", func(n *node) error {
			_, err := n.CreateENI(t.Context(), vpcapi.CreateENI{SubnetID: n.subnet.ID, SecurityGroups: []string{"sg-0fa4e00000000dead"}})
			return err
		}, verdict{NoGroup: true}},
		{"group of another VPC", func(n *node) error {
			other := n.world.AddVPC(netip.MustParsePrefix("10.9.0.0/16"))
			return n.SetSecurityGroups(t.Context(), ipam.ENIID(n.instance.PrimaryENI), []string{n.world.AddSecurityGroup(other.ID, "x")})
		}, verdict{NoGroup: true}},
		{"another zone", func(n *node) error {
			far, err := n.world.AddSubnet(fakeaws.SubnetSpec{VPCID: n.instance.VPCID, AZ: "us-west-2b", CIDR: netip.MustParsePrefix("10.0.7.0/24")})
			if err != nil {
				t.Fatal(err)
			}
			_, err = n.AttachENI(t.Context(), n.create(vpcapi.CreateENI{SubnetID: far.ID}).ID, 0, 1)
			return err
		}, verdict{OtherZone: true}},
		{"a slot that is taken", func(n *node) error {
			_, err := n.AttachENI(t.Context(), n.create(vpcapi.CreateENI{}).ID, 0, 0)
			return err
		}, verdict{}},
		{"said as a value", func(n *node) error {
			n.world.SetFaults(fakeaws.FailCalls("AttachNetworkInterface", 1, 1, fakeaws.Fault{Code: "InvalidParameterValue", Message: "The network interface and the instance are in different Availability Zones"}))
			_, err := n.AttachENI(t.Context(), "eni-0", 0, 1)
			return err
		}, verdict{OtherZone: true}},
		{"said otherwise", func(n *node) error {
			n.world.SetFaults(fakeaws.FailCalls("CreateNetworkInterface", 1, 1, fakeaws.Fault{Code: "InvalidParameter", Message: "Security group sg-1 and subnet subnet-1 belong to different networks."}))
			_, err := n.CreateENI(t.Context(), vpcapi.CreateENI{SubnetID: n.subnet.ID})
			return err
		}, verdict{NoGroup: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, setup{})
			if err := row.provoke(n); err == nil || of(err) != row.want {
				t.Errorf("%v: %+v, want %+v", err, of(err), row.want)
			}
		})
	}
}

// ENIs are attached to the requested card, and described there.
func TestAttachENI_Cards(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{kind: "p4d.24xlarge"})
	l, _ := n.world.InstanceLimits(n.instance.ID)
	for _, card := range l.Cards[1:] {
		e := n.create(vpcapi.CreateENI{})
		if _, err := n.AttachENI(t.Context(), e.ID, card.Index, 1); err != nil {
			t.Fatal(err)
		}
		got, err := n.DescribeENIs(t.Context(), []ipam.ENIID{e.ID})
		if err != nil || len(got) != 1 || got[0].Card != card.Index || got[0].Device != 1 {
			t.Errorf("card %d: %+v, %v", card.Index, got, err)
		}
	}
	efa, err := n.world.CreateENI(fakeaws.ENISpec{SubnetID: n.subnet.ID, Type: "efa-only"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.AttachENI(t.Context(), ipam.ENIID(efa.ID), l.Cards[1].Index, 2); err != nil {
		t.Fatal(err)
	}
	got, err := n.DescribeENIs(t.Context(), nil)
	if err != nil || len(got) != len(l.Cards)+1 {
		t.Fatalf("%d ENIs described, %v", len(got), err)
	}
	for _, e := range got {
		if (e.InterfaceType == "efa-only") == e.PrimaryIP.IsValid() {
			t.Errorf("%s of type %s has the address %s", e.ID, e.InterfaceType, e.PrimaryIP)
		}
	}
}
