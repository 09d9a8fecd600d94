package trunk_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/fakeaws"
	"cnictl/testenv/netns"
	"cnictl/testenv/vpc"
)

// denial is how long no answer means that there is none.
const denial = 500 * time.Millisecond

// lab is a world with two hosts, one of which has a trunk.
type lab struct {
	t      *testing.T
	world  *fakeaws.World
	fabric *vpc.Fabric
	subnet fakeaws.Subnet
	trunk  fakeaws.ENI
	a, b   *host // b has the trunk
}

func newLab(t *testing.T) *lab {
	t.Helper()
	testenv.RequireKernel(t, "veth", "vlan")
	l := &lab{t: t, world: fakeaws.NewWorld(fakeaws.Options{})}
	t.Cleanup(l.world.Close)
	v := l.world.AddVPC(netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	var err error
	l.subnet, err = l.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: v.ID, CIDR: netip.MustParsePrefix("10.1.0.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1::/64"), AssignIPv6: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.fabric, err = vpc.NewFabric(vpc.Options{World: l.world}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.fabric.Close(); err != nil { // includes errors from following the world
			t.Error(err)
		}
	})
	l.a, l.b = l.boot(), l.boot()
	if l.trunk, err = l.world.AddTrunk(fakeaws.TrunkSpec{InstanceID: l.b.id, Device: 1}); err != nil {
		t.Fatal(err)
	}
	l.b.up(l.trunk)
	return l
}

// host is an instance with a plain namespace.
type host struct {
	t       *testing.T
	id      string
	ns      *netns.NS
	primary fakeaws.ENI
}

func (l *lab) boot() *host {
	l.t.Helper()
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		l.t.Fatal(err)
	}
	h := &host{t: l.t, id: i.ID, ns: netns.New(l.t)}
	h.primary, _ = l.world.ENI(i.PrimaryENI)
	h.do(func() error {
		return errors.Join(
			os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0),
			os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte("0"), 0),
			os.WriteFile("/proc/sys/net/ipv4/conf/default/rp_filter", []byte("0"), 0),
		)
	})
	if err := l.fabric.Join(h.id, h.ns); err != nil {
		l.t.Fatal(err)
	}
	h.do(func() error {
		link, err := linkByMAC(h.primary.MAC)
		if err != nil {
			return err
		}
		errs := []error{
			netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(h.primary.PrimaryIP, 20))}), netlink.LinkSetUp(link),
			netlink.RouteAdd(defaultBy(vpc.Gateway(l.subnet.CIDR), link, 254)), netlink.RouteAdd(defaultBy(vpc.GatewayIPv6, link, 254)),
		}
		for _, a := range h.primary.IPv6s {
			errs = append(errs, netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, 128)), Flags: unix.IFA_F_NODAD}))
		}
		return errors.Join(errs...)
	})
	return h
}

// up brings the link of an ENI up.
func (h *host) up(e fakeaws.ENI) {
	h.t.Helper()
	h.do(func() error {
		link, err := linkByMAC(e.MAC)
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	})
}

// own gives a host an address.
func (h *host) own(a netip.Addr) {
	h.t.Helper()
	h.do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(lo, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, a.BitLen()))})
	})
}

// branch creates a branch ENI of b's trunk.
func (l *lab) branch(vlan int) (fakeaws.ENI, fakeaws.Association) {
	l.t.Helper()
	e, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: l.subnet.ID})
	if err != nil {
		l.t.Fatal(err)
	}
	return e, l.associate(e, vlan, false)
}

func (l *lab) associate(e fakeaws.ENI, vlan int, collide bool) fakeaws.Association {
	l.t.Helper()
	a, err := l.world.AssociateBranch(fakeaws.AssociateSpec{Trunk: l.trunk.ID, Branch: e.ID, VLAN: vlan, Collide: collide})
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

func (l *lab) disassociate(a fakeaws.Association) {
	l.t.Helper()
	if err := l.world.DisassociateBranch(a.ID); err != nil {
		l.t.Fatal(err)
	}
}

// own makes b answer for the addresses of a branch ENI and send from them through a VLAN
// device with the given MAC, as for a pod. It replaces an existing device.
func (l *lab) own(e fakeaws.ENI, vlan int, mac string) {
	l.t.Helper()
	l.b.do(func() error {
		name, table := fmt.Sprintf("vlan.eth.%d", vlan), 100+vlan
		if old, err := netlink.LinkByName(name); err == nil {
			if err := netlink.LinkDel(old); err != nil {
				return err
			}
		}
		parent, err := linkByMAC(l.trunk.MAC)
		if err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.ParentIndex, attrs.Flags = name, parent.Attrs().Index, net.FlagUp
		if attrs.HardwareAddr, err = net.ParseMAC(mac); err != nil {
			return err
		}
		if err := netlink.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: vlan}); err != nil {
			return err
		}
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		errs := []error{netlink.RouteAdd(defaultBy(vpc.Gateway(l.subnet.CIDR), link, table)), netlink.RouteAdd(defaultBy(vpc.GatewayIPv6, link, table))}
		for _, a := range append([]netip.Addr{e.PrimaryIP}, e.IPv6s...) {
			rule := netlink.NewRule()
			rule.Src, rule.Table, rule.Priority = ipNet(netip.PrefixFrom(a, a.BitLen())), table, 1536
			rule.Family = netlink.FAMILY_V4
			addr := &netlink.Addr{IPNet: rule.Src}
			if a.Is6() {
				rule.Family, addr.Flags = netlink.FAMILY_V6, unix.IFA_F_NODAD
			}
			before := *rule
			before.Table = 0 // any
			for netlink.RuleDel(&before) == nil {
				continue // until none is left
			}
			errs = append(errs, netlink.AddrReplace(lo, addr), netlink.RuleAdd(rule))
		}
		return errors.Join(errs...)
	})
}

// via adds or removes the rule that sends from an address through the primary ENI.
func (h *host) via(a netip.Addr, present bool) {
	h.t.Helper()
	rule := netlink.NewRule()
	rule.Src, rule.Table, rule.Priority, rule.Family = ipNet(netip.PrefixFrom(a, a.BitLen())), 254, 1000, netlink.FAMILY_V4
	h.do(func() error {
		if present {
			return netlink.RuleAdd(rule)
		}
		return netlink.RuleDel(rule)
	})
}

func defaultBy(gateway netip.Addr, link netlink.Link, table int) *netlink.Route {
	all := netip.MustParsePrefix("0.0.0.0/0")
	if gateway.Is6() {
		all = netip.MustParsePrefix("::/0")
	}
	return &netlink.Route{Dst: ipNet(all), Gw: gateway.AsSlice(), LinkIndex: link.Attrs().Index, Table: table, Flags: int(netlink.FLAG_ONLINK)}
}

func (h *host) do(f func() error) {
	h.t.Helper()
	if err := h.ns.Do(f); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) reaches(from, to netip.Addr) {
	h.t.Helper()
	if err := h.ns.Ping(from, to, testenv.Left(h.t)); err != nil {
		h.t.Errorf("%s cannot reach %s: %v", h.id, to, err)
	}
}

func (h *host) misses(from, to netip.Addr) {
	h.t.Helper()
	switch err := h.ns.Ping(from, to, denial); {
	case err == nil:
		h.t.Errorf("%s reaches %s", h.id, to)
	case !errors.Is(err, netns.ErrNoAnswer):
		h.t.Errorf("%s pings %s: %v, want no answer", h.id, to, err)
	}
}

func (l *lab) drops(e fakeaws.ENI) uint64 {
	l.t.Helper()
	n, err := l.fabric.SourceDrops(e.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

var anyAddr netip.Addr

func linkByMAC(mac string) (netlink.Link, error) {
	links, err := netns.Dump(netlink.LinkList)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Type() == "veth" && l.Attrs().HardwareAddr.String() == mac })
	if i < 0 {
		return nil, fmt.Errorf("no link has MAC %s", mac)
	}
	return links[i], nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
