package vpc_test

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
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/netns"
	"cnictl/testenv/network/vpc"
)

// denial is how long no answer means that there is none. A packet that passes needs well under
// a millisecond.
const denial = 250 * time.Millisecond

// lab is a world with two subnets and a fabric for it.
type lab struct {
	t       *testing.T
	world   *fakeaws.World
	fabric  *vpc.Fabric
	subnets [2]fakeaws.Subnet
}

func newLab(t *testing.T, o vpc.Options) *lab {
	t.Helper()
	testenv.RequireKernel(t, "veth", "nft")
	l := &lab{t: t, world: fakeaws.NewWorld(fakeaws.Options{})}
	t.Cleanup(l.world.Close)
	v := l.world.AddVPC(netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	for i, cidr := range []string{"10.1.0.0/20", "10.1.16.0/20"} {
		s, err := l.world.AddSubnet(fakeaws.SubnetSpec{
			VPCID: v.ID, CIDR: netip.MustParsePrefix(cidr), IPv6CIDR: netip.MustParsePrefix(fmt.Sprintf("2001:db8:1:%d::/64", i)),
		})
		if err != nil {
			t.Fatal(err)
		}
		l.subnets[i] = s
	}
	o.World = l.world
	fabric, err := vpc.NewFabric(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fabric.Close(); err != nil { // includes errors from following the world
			t.Error(err)
		}
		if v := l.world.Violations(); len(v) > 0 {
			t.Errorf("violations of the world: %v", v)
		}
	})
	l.fabric = fabric
	return l
}

// host is an instance with a plain namespace instead of a whole node.
type host struct {
	lab     *lab
	id      string
	ns      *netns.NS
	primary fakeaws.ENI
}

// host boots an instance in a subnet.
func (l *lab) host(subnet int) *host {
	l.t.Helper()
	return l.boot(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnets[subnet].ID})
}

func (l *lab) boot(spec fakeaws.InstanceSpec) *host {
	l.t.Helper()
	i, err := l.world.AddInstance(spec)
	if err != nil {
		l.t.Fatal(err)
	}
	h := &host{lab: l, id: i.ID, ns: netns.New(l.t)}
	h.primary = l.eni(i.PrimaryENI)
	// Otherwise links could not send neighbour solicitations in their first second.
	h.do(func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0) })
	if err := l.fabric.Join(h.id, h.ns); err != nil {
		l.t.Fatal(err)
	}
	h.configure(h.primary, 254)
	return h
}

func (l *lab) eni(id string) fakeaws.ENI {
	l.t.Helper()
	e, ok := l.world.ENI(id)
	if !ok {
		l.t.Fatalf("no ENI %s", id)
	}
	return e
}

// configure sets up the link of an ENI with its primary address and a default
// route in a table; tables other than main get a rule for the address.
func (h *host) configure(e fakeaws.ENI, table int) {
	h.lab.t.Helper()
	subnet, ok := h.lab.world.Subnet(e.SubnetID)
	if !ok {
		h.lab.t.Fatalf("no subnet %s", e.SubnetID)
	}
	h.do(func() error {
		link, err := linkByMAC(e.MAC)
		if err != nil {
			return err
		}
		bits := subnet.CIDR.Bits()
		if table != 254 {
			bits = 32 // the on-link route belongs to the primary ENI
		}
		return errors.Join(
			// As on a node: replies may arrive on a different ENI from the one that sent the request.
			os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte("0"), 0),
			os.WriteFile("/proc/sys/net/ipv4/conf/"+link.Attrs().Name+"/rp_filter", []byte("0"), 0),
			netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(e.PrimaryIP, bits))}),
			netlink.LinkSetUp(link),
			netlink.RouteAdd(&netlink.Route{
				Dst: ipNet(netip.MustParsePrefix("0.0.0.0/0")), Gw: vpc.Gateway(subnet.CIDR).AsSlice(),
				LinkIndex: link.Attrs().Index, Table: table, Flags: int(netlink.FLAG_ONLINK),
			}),
		)
	})
	if table != 254 {
		h.from(e.PrimaryIP, table)
	}
}

// own gives the host an extra address, like a pod's.
func (h *host) own(a netip.Addr) {
	h.lab.t.Helper()
	h.do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		addr := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, a.BitLen()))}
		if a.Is6() {
			addr.Flags = unix.IFA_F_NODAD // usable on return
		}
		return netlink.AddrAdd(lo, addr)
	})
}

// from routes packets that have a source address through a table.
func (h *host) from(a netip.Addr, table int) {
	h.lab.t.Helper()
	h.do(func() error {
		rule := netlink.NewRule()
		rule.Src, rule.Table, rule.Priority = ipNet(netip.PrefixFrom(a, a.BitLen())), table, 1536
		if a.Is6() {
			rule.Family = netlink.FAMILY_V6
		}
		return netlink.RuleAdd(rule)
	})
}

func (h *host) do(f func() error) {
	h.lab.t.Helper()
	if err := h.ns.Do(f); err != nil {
		h.lab.t.Fatal(err)
	}
}

// attach creates an ENI and attaches it at a device index.
func (h *host) attach(subnet, device int) fakeaws.ENI {
	h.lab.t.Helper()
	e, err := h.lab.world.CreateENI(fakeaws.ENISpec{SubnetID: h.lab.subnets[subnet].ID})
	if err != nil {
		h.lab.t.Fatal(err)
	}
	if _, err := h.lab.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: h.id, Device: device}); err != nil {
		h.lab.t.Fatal(err)
	}
	return h.lab.eni(e.ID)
}

// assign gives an ENI one secondary address.
func (l *lab) assign(e fakeaws.ENI) netip.Addr {
	l.t.Helper()
	got, err := l.world.Assign(e.ID, fakeaws.AssignSpec{Count: 1})
	if err != nil {
		l.t.Fatal(err)
	}
	return got[0].Addr()
}

func (l *lab) unassign(e fakeaws.ENI, a netip.Addr) {
	l.t.Helper()
	if err := l.world.Unassign(e.ID, netip.PrefixFrom(a, 32)); err != nil {
		l.t.Fatal(err)
	}
}

// reaches and misses ping. With an invalid from, the kernel chooses the source.
func (h *host) reaches(from, to netip.Addr) {
	h.lab.t.Helper()
	if err := h.ns.Ping(from, to, testenv.Left(h.lab.t)); err != nil {
		h.lab.t.Errorf("%s cannot reach %s: %v", h.id, to, err)
	}
}

func (h *host) misses(from, to netip.Addr) {
	h.lab.t.Helper()
	switch err := h.ns.Ping(from, to, denial); {
	case err == nil:
		h.lab.t.Errorf("%s reaches %s", h.id, to)
	case !errors.Is(err, netns.ErrNoAnswer):
		h.lab.t.Errorf("%s pings %s: %v, want no answer", h.id, to, err)
	}
}

var anyAddr netip.Addr

func linkByMAC(mac string) (netlink.Link, error) {
	links, err := netns.Dump(netlink.LinkList)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().HardwareAddr.String() == mac })
	if i < 0 {
		return nil, fmt.Errorf("no link has MAC %s", mac)
	}
	return links[i], nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
