package resync

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
)

func addrs(list ...string) (all []netip.Addr) {
	for _, s := range list {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

func TestFromMetadata(t *testing.T) {
	t.Parallel()
	whole := Interface{
		MAC: "02:00:00:00:00:01", ENI: "eni-1", Card: 1, Device: 2, SubnetID: "subnet-a", SecurityGroups: []string{"sg-1"},
		IPv4s: addrs("10.0.1.4", "10.0.1.9"), Prefixes: prefixes("10.0.2.0/28"), IPv6s: addrs("fd00::4"), IPv6Prefixes: prefixes("fd00:0:0:0:1::/80"),
	}
	want := ENI{
		ID: "eni-1", MAC: whole.MAC, Status: "in-use", InterfaceType: "interface", SubnetID: "subnet-a", AttachmentStatus: AttachmentAttached,
		InstanceID: self, Card: 1, Device: 2, DeleteOnTermination: true, PrimaryIP: whole.IPv4s[0], SecondaryIPs: whole.IPv4s[1:],
		Prefixes: whole.Prefixes, IPv6s: whole.IPv6s, IPv6Prefixes: whole.IPv6Prefixes, SecurityGroups: whole.SecurityGroups,
		Tags: map[string]string{TagInstanceID: self},
	}
	rows := []struct {
		name   string
		change func(f *Interface)
		expect func(e *ENI) // nil if nothing follows
	}{
		{"whole", func(*Interface) {}, func(*ENI) {}},
		{"the primary one is at device 0, whatever number the service gives it", func(f *Interface) { f.ENI, f.Card = "eni-0", 0 },
			func(e *ENI) { e.ID, e.Card, e.Device = "eni-0", 0, 0 }},
		{"IPv6 only", func(f *Interface) { f.IPv4s = nil }, func(e *ENI) { e.PrimaryIP, e.SecondaryIPs = netip.Addr{}, nil }},
		{"no address at all", func(f *Interface) { f.IPv4s, f.IPv6s = nil, nil }, func(e *ENI) {
			e.PrimaryIP, e.SecondaryIPs, e.IPv6s, e.InterfaceType = netip.Addr{}, nil, nil, string(TypeEFAOnly)
		}},
		{"addresses not read", func(f *Interface) { f.IPv4s, f.Unread = nil, PartIPv4s }, nil},
		{"prefixes not read", func(f *Interface) { f.Unread = PartPrefixes }, nil},
		{"IPv6 prefixes not read", func(f *Interface) { f.Unread = PartIPv6Prefixes }, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := whole
			row.change(&f)
			got, ok := FromMetadata(f, self, "eni-0")
			if ok != (row.expect != nil) {
				t.Fatalf("known: %v", ok)
			}
			if !ok {
				return
			}
			expect := want
			row.expect(&expect)
			if diff := cmp.Diff(expect, got, asValues); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFromMetadata_Settles: if the metadata includes EC2's part, a look at it is as good as
// a query to EC2. A book that matches it stays the same, and one that lacks something gets
// it.
func TestFromMetadata_Settles(t *testing.T) {
	t.Parallel()
	view := shownAs(described(0, "10.0.0.9"), described(1, "10.0.1.9", "10.0.2.0/28"))
	var enis []ENI
	for _, f := range view.Interfaces {
		e, ok := FromMetadata(f, self, "eni-0")
		if !ok {
			t.Fatal("not known")
		}
		enis = append(enis, e)
	}
	for _, row := range []struct {
		name   string
		book   []ipam.Event
		events int
	}{
		{"the same", []ipam.Event{attach(0, "10.0.0.9"), attach(1, "10.0.1.9", "10.0.2.0/28")}, 0},
		{"a prefix is new", []ipam.Event{attach(0, "10.0.0.9"), attach(1, "10.0.1.9")}, 1},
		{"an address is gone", []ipam.Event{attach(0, "10.0.0.9", "10.0.0.10"), attach(1, "10.0.1.9", "10.0.2.0/28")}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := bookOf(t, morning, row.book...)
			res := Reconcile(ReconcileInput{Now: morning, Book: b.Snapshot(), Policy: policy(), EC2: listed(enis...), Metadata: view, Kernel: routed("10.0.9.9")})
			if !res.Settled || len(res.Events) != row.events || len(res.SetUp) != 0 || len(res.Others) != 0 {
				t.Errorf("settled %v, events %v, set up %v, others %v", res.Settled, res.Events, res.SetUp, res.Others)
			}
		})
	}
}

func TestAttachedOf(t *testing.T) {
	t.Parallel()
	eni := with(described(2, "10.0.2.9", "10.0.3.0/28"), func(e *ENI) {
		e.Card, e.IPv6s, e.IPv6Prefixes, e.InterfaceType = 1, addrs("fd00::4", "fd00::5"), prefixes("fd00:0:0:0:1::/80"), "trunk"
	})
	subnet := Subnet{ID: "subnet-a", CIDR: netip.MustParsePrefix("10.0.0.0/16"), IPv6CIDR: netip.MustParsePrefix("fd00::/64")}
	shown := Interface{SubnetCIDR: netip.MustParsePrefix("10.0.0.0/20"), SubnetIPv6CIDR: netip.MustParsePrefix("fd00::/64")}
	v4 := Attached{
		ENI: ipam.ENI{ID: "eni-2", Card: 1, Device: 2, Trunk: true, SubnetID: "subnet-a", Subnet: subnet.CIDR, PrimaryIP: eni.PrimaryIP,
			RouteTable: netnames.RouteTable(1, 2), AttachedAt: morning},
		CIDRs: prefixes("10.0.2.9", "10.0.3.0/28"), AttachmentID: "eni-attach-2",
	}
	v6 := v4
	v6.ENI.Subnet, v6.ENI.PrimaryIP, v6.CIDRs = subnet.IPv6CIDR, eni.IPv6s[0], eni.IPv6Prefixes
	on := func(a Attached, change func(*Attached)) Attached { change(&a); return a }
	rows := []struct {
		name string
		in   AttachedInput
		want Attached
	}{
		{"as EC2 describes it", AttachedInput{ENI: eni, Subnet: subnet}, v4},
		{"the metadata's subnet counts more", AttachedInput{ENI: eni, Subnet: subnet, Shown: shown}, on(v4, func(a *Attached) { a.ENI.Subnet = shown.SubnetCIDR })},
		{"the primary one is at device 0", AttachedInput{ENI: eni, Subnet: subnet, Primary: true},
			on(v4, func(a *Attached) { a.ENI.Primary, a.ENI.Device, a.ENI.RouteTable = true, 0, netnames.RouteTable(1, 0) })},
		{"excluded", AttachedInput{ENI: eni, Subnet: subnet, Excluded: true}, on(v4, func(a *Attached) { a.ENI.Excluded = true })},
		{"IPv6: the /80s and nothing else", AttachedInput{ENI: eni, Subnet: subnet, IPv6: true}, v6},
		{"IPv6, subnets not listed", AttachedInput{ENI: eni, Shown: shown, IPv6: true}, v6},
		{"IPv6, unknown subnet", AttachedInput{ENI: eni, IPv6: true}, on(v6, func(a *Attached) { a.ENI.Subnet = netip.Prefix{} })},
		{"IPv6, listed in another order", AttachedInput{ENI: with(eni, func(e *ENI) { e.IPv6s = addrs("fd00::5", "fd00::4") }), Subnet: subnet, IPv6: true}, v6},
		{"IPv6, another is marked", AttachedInput{ENI: with(eni, func(e *ENI) { e.PrimaryIPv6 = e.IPv6s[1] }), Subnet: subnet, IPv6: true},
			on(v6, func(a *Attached) { a.ENI.PrimaryIP = eni.IPv6s[1] })},
		{"IPv6, without an address", AttachedInput{ENI: with(eni, func(e *ENI) { e.IPv6s = nil }), Subnet: subnet, IPv6: true},
			on(v6, func(a *Attached) { a.ENI.PrimaryIP = netip.Addr{} })},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.in.Now = morning
			if diff := cmp.Diff(row.want, AttachedOf(row.in), asValues); diff != "" {
				t.Error(diff)
			}
		})
	}
}
