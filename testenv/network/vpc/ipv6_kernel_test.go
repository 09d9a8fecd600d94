package vpc_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
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
