package vpc_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/fakeaws"
	"cnictl/testenv/vpc"
)

// host6 boots an instance whose primary ENI has an IPv6 address.
func (l *lab) host6(subnet int) *host {
	l.t.Helper()
	h := l.boot(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnets[subnet].ID, IPv6: true})
	h.configure6(h.primary, 254)
	return h
}

// configure6 gives the link of an ENI its IPv6 address and a default route in a table.
func (h *host) configure6(e fakeaws.ENI, table int) {
	h.lab.t.Helper()
	h.do(func() error {
		link, err := linkByMAC(e.MAC)
		if err != nil {
			return err
		}
		return errors.Join(
			netlink.LinkSetUp(link),
			netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(e.IPv6s[0], 128)), Flags: unix.IFA_F_NODAD}),
			netlink.RouteAdd(&netlink.Route{
				Dst: ipNet(netip.MustParsePrefix("::/0")), Gw: vpc.GatewayIPv6.AsSlice(), LinkIndex: link.Attrs().Index, Table: table,
			}),
		)
	})
	if table != 254 {
		h.from(e.IPv6s[0], table)
	}
}

func TestIPv6_ReachableExactlyWhileAssigned(t *testing.T) {
	t.Parallel()
	l := newLab(t, vpc.Options{})
	a, b, far := l.host6(0), l.host6(0), l.host6(1)
	for _, from := range []*host{a, far} {
		from.reaches(anyAddr, b.primary.IPv6s[0])
		b.reaches(anyAddr, from.primary.IPv6s[0])
	}
	got, err := l.world.Assign(b.primary.ID, fakeaws.AssignSpec{IPv6Prefixes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Bits() != 80 {
		t.Fatalf("prefix %v", got[0])
	}
	x := got[0].Addr().Next()
	b.own(x)
	a.reaches(anyAddr, x)
	far.reaches(anyAddr, x)
	b.reaches(x, a.primary.IPv6s[0])
	if id, ok := l.fabric.Instance(x); !ok || id != b.id {
		t.Errorf("Instance(%s) = %q, %v; want %s", x, id, ok, b.id)
	}

	if err := l.world.Unassign(b.primary.ID, got[0]); err != nil {
		t.Fatal(err)
	}
	a.misses(anyAddr, x)
	b.misses(x, a.primary.IPv6s[0])
	a.reaches(anyAddr, b.primary.IPv6s[0])
	if id, ok := l.fabric.Instance(x); ok {
		t.Errorf("Instance(%s) = %q after it was unassigned", x, id)
	}
}

func TestIPv6_SourceCheck(t *testing.T) {
	t.Parallel()
	l := newLab(t, vpc.Options{})
	a, b := l.host6(1), l.host6(0)
	e, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: l.subnets[0].ID, IPv6s: 1, IPv6Prefixes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: b.id, Device: 1}); err != nil {
		t.Fatal(err)
	}
	second := l.eni(e.ID)
	b.configure6(second, 2)
	x := second.IPv6Prefixes[0].Addr().Next()
	b.own(x)
	// The main table sends it through the primary ENI, which does not own it.
	testenv.Eventually(t, "a dropped packet of the primary ENI", func() bool {
		b.misses(x, a.primary.IPv6s[0])
		n, err := l.fabric.SourceDrops(b.primary.ID)
		return err == nil && n > 0
	})
	if n, err := l.fabric.SourceDrops(second.ID); err != nil || n != 0 {
		t.Errorf("dropped packets of the second ENI: %d, error %v; want none", n, err)
	}
	b.from(x, 2)
	b.reaches(x, a.primary.IPv6s[0])
	a.reaches(anyAddr, x)
	for _, never := range []string{"2001:db8:1::ffff", "2001:db8:1:9::1", "2001:db8:ffff::1"} {
		a.misses(anyAddr, netip.MustParseAddr(never))
	}
}

// Every ENI that can carry IP has a link: trunks, and ENIs of every network card.
func TestLink_TrunksAndFurtherCards(t *testing.T) {
	t.Parallel()
	l := newLab(t, vpc.Options{})
	b := l.boot(fakeaws.InstanceSpec{Type: "p4d.24xlarge", SubnetID: l.subnets[0].ID})
	attach := func(kind string, card, device int) fakeaws.ENI {
		t.Helper()
		e, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: l.subnets[0].ID, Type: kind})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: b.id, Card: card, Device: device}); err != nil {
			t.Fatal(err)
		}
		return l.eni(e.ID)
	}
	trunk, further, efa := attach("trunk", 0, 1), attach("interface", 2, 1), attach("efa-only", 3, 1)
	links := b.links()
	if links[trunk.MAC] != "ens6" || links[further.MAC] != "ens206" || links[efa.MAC] != "" || len(links) != 3 {
		t.Errorf("links %v; want those of the primary ENI, trunk %s and ENI %s of card 2", links, trunk.MAC, further.MAC)
	}
	b.configure(further, 10201)
	l.host(1).reaches(anyAddr, further.PrimaryIP)
	for _, e := range []fakeaws.ENI{trunk, further, efa} {
		if err := l.world.DetachENI(e.Attachment.ID); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "the links to go", func() bool { return len(b.links()) == 1 })
}
