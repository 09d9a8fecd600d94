package fakeaws_test

import (
	"net/netip"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/testenv/aws/fakeaws"
)

// addIPv6Only adds a subnet without IPv4.
func addIPv6Only(t *testing.T, w *fakeaws.World, vpcID string) fakeaws.Subnet {
	t.Helper()
	n, err := w.AddSubnet(fakeaws.SubnetSpec{VPCID: vpcID, IPv6CIDR: netip.MustParsePrefix("2001:db8:0:6::/64")})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ENIs in IPv6-only subnets have an IPv6 address and no IPv4 address.
func TestIPv6OnlySubnet(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	defer b.noViolations()
	n := addIPv6Only(t, b.World, b.vpc.ID)
	got := must(b, b.ec2.DescribeSubnets, &ec2.DescribeSubnetsInput{SubnetIds: []string{n.ID}}).Subnets[0]
	if got.CidrBlock != nil || !aws.ToBool(got.Ipv6Native) || aws.ToInt32(got.AvailableIpAddressCount) != 0 || len(got.Ipv6CidrBlockAssociationSet) != 1 {
		t.Errorf("described as %+v", got)
	}
	e := must(b, b.ec2.CreateNetworkInterface, &ec2.CreateNetworkInterfaceInput{SubnetId: &n.ID, Ipv6PrefixCount: aws.Int32(1)}).NetworkInterface
	if e.PrivateIpAddress != nil || len(e.PrivateIpAddresses) != 0 || len(e.Ipv6Addresses) != 1 || len(e.Ipv6Prefixes) != 1 {
		t.Errorf("its ENI has %v, %v, %v", e.PrivateIpAddresses, e.Ipv6Addresses, e.Ipv6Prefixes)
	}
	for name, in := range map[string]*ec2.CreateNetworkInterfaceInput{
		"addresses": {SubnetId: &n.ID, SecondaryPrivateIpAddressCount: aws.Int32(1)}, "prefixes": {SubnetId: &n.ID, Ipv4PrefixCount: aws.Int32(1)},
	} {
		if code := refused(b, b.ec2.CreateNetworkInterface, in); code != "InvalidParameterCombination" {
			t.Errorf("IPv4 %s there: %s", name, code)
		}
	}
	if _, err := b.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: n.ID}); codeOf(err) != "UnsupportedOperation" {
		t.Errorf("an instance there: %v", err)
	}
	if _, err := b.AddSubnet(fakeaws.SubnetSpec{VPCID: b.vpc.ID}); codeOf(err) != "InvalidSubnet.Range" {
		t.Errorf("a subnet without any CIDR: %v", err)
	}
}

// A subnet that assigns IPv6 addresses does so for every ENI, in addition to its prefix; /80s
// are aligned, inside the subnet and never assigned twice.
func TestIPv6_DualStack(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	defer b.noViolations()
	block := netip.MustParsePrefix("2001:db8:0:2::/64")
	n := addSubnet(t, b.World, fakeaws.SubnetSpec{VPCID: b.vpc.ID, IPv6CIDR: block, AssignIPv6: true}, "10.0.2.0/24")
	i, err := b.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: n.ID})
	if err != nil {
		t.Fatal(err)
	}
	if primary, _ := b.ENI(i.PrimaryENI); len(primary.IPv6s) != 1 || !block.Contains(primary.IPv6s[0]) {
		t.Errorf("the primary ENI has %v", primary.IPv6s)
	}
	seen := map[netip.Prefix]bool{}
	for range 20 {
		e := must(b, b.ec2.CreateNetworkInterface, &ec2.CreateNetworkInterfaceInput{SubnetId: &n.ID, Ipv6PrefixCount: aws.Int32(2)}).NetworkInterface
		if len(e.Ipv6Addresses) != 1 || len(e.Ipv6Prefixes) != 2 || e.PrivateIpAddress == nil {
			t.Fatalf("an ENI with %v and %v", e.Ipv6Addresses, e.Ipv6Prefixes)
		}
		for _, x := range e.Ipv6Prefixes {
			p := netip.MustParsePrefix(*x.Ipv6Prefix)
			if p.Bits() != 80 || p != p.Masked() || !block.Contains(p.Addr()) || seen[p] {
				t.Errorf("prefix %s", p)
			}
			seen[p] = true
		}
	}
}

// A full subnet is reported in one of two ways, for addresses and prefixes; a fragmented subnet
// with enough free addresses for a prefix is reported as having no block.
func TestExhausted_Flavours(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name                 string
		asValue, fragment    bool
		addresses, blockCode string
	}{
		{"full", false, false, "InsufficientFreeAddressesInSubnet", "InsufficientCidrBlocks"},
		{"full, as value", true, false, "InvalidParameterValue", "InvalidParameterValue"},
		{"fragmented", false, true, "", "InsufficientCidrBlocks"},
		{"fragmented, as value", true, true, "", "InsufficientCidrBlocks"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fakeaws.Options{ExhaustedAsValue: row.asValue})
			take := func() error { _, err := b.Occupy(b.subnet.ID, 1000); return err }
			if row.fragment {
				take = func() error { return b.Fragment(b.subnet.ID) }
			}
			if err := take(); err != nil {
				t.Fatal(err)
			}
			block := &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: &b.instance.PrimaryENI, Ipv4PrefixCount: aws.Int32(1)}
			if code := refused(b, b.ec2.AssignPrivateIpAddresses, block); code != row.blockCode {
				t.Errorf("a prefix: %s, want %s", code, row.blockCode)
			}
			_, err := b.ec2.AssignPrivateIpAddresses(t.Context(), &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: &b.instance.PrimaryENI, SecondaryPrivateIpAddressCount: aws.Int32(1)})
			if code := answerOf(err); code != row.addresses {
				t.Errorf("an address: %s, want %q", code, row.addresses)
			}
			_, err = b.ec2.CreateNetworkInterface(t.Context(), &ec2.CreateNetworkInterfaceInput{SubnetId: &b.subnet.ID})
			if code := answerOf(err); code != row.addresses {
				t.Errorf("an ENI: %s, want %q", code, row.addresses)
			}
		})
	}
}

// Every card takes as many ENIs as the type allows, including efa-only ones, and numbers its
// devices separately.
func TestCards(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	i := addInstance(t, b.World, "p4d.24xlarge", b.subnet.ID)
	l, ok := b.InstanceLimits(i.ID)
	if !ok || len(l.Cards) < 2 {
		t.Fatalf("p4d.24xlarge has cards %v", l.Cards)
	}
	attach := func(card, device int, kind types.NetworkInterfaceCreationType) (string, error) {
		e := must(b, b.ec2.CreateNetworkInterface, &ec2.CreateNetworkInterfaceInput{SubnetId: &b.subnet.ID, InterfaceType: kind}).NetworkInterface
		_, err := b.ec2.AttachNetworkInterface(t.Context(), &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: e.NetworkInterfaceId, InstanceId: &i.ID,
			DeviceIndex: aws.Int32(int32(device)), NetworkCardIndex: aws.Int32(int32(card))})
		return *e.NetworkInterfaceId, err
	}
	last := l.Cards[len(l.Cards)-1]
	efa, err := attach(last.Index, 1, "efa-only")
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := b.ENI(efa); e.Type != "efa-only" || len(e.CIDRs()) != 0 || e.Attachment.Card != last.Index {
		t.Errorf("%+v", e)
	}
	if _, err := b.ec2.AssignPrivateIpAddresses(t.Context(), &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: &efa, SecondaryPrivateIpAddressCount: aws.Int32(1)}); answerOf(err) != "UnsupportedOperation" {
		t.Errorf("an address for an efa-only ENI: %v", err)
	}
	for device := 2; device <= last.MaxENIs; device++ {
		if _, err := attach(last.Index, device, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := attach(last.Index, 100, ""); answerOf(err) != "AttachmentLimitExceeded" {
		t.Errorf("one more than card %d takes: %v", last.Index, err)
	}
	if _, err := attach(l.Cards[len(l.Cards)-2].Index, 1, ""); err != nil {
		t.Errorf("the card beside it: %v", err)
	}
	if _, err := attach(99, 1, ""); answerOf(err) != "InvalidParameterValue" {
		t.Errorf("a card that is not there: %v", err)
	}
}
