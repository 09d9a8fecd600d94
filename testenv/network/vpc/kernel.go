package vpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
)

// internetLink is the fabric's link to the outside host.
const internetLink = "internet"

// nextHop means "the ENI behind this link" in routes: an unused address with a permanent
// neighbour entry per link that has the ENI's MAC. The fabric therefore never sends ARP
// requests to a node, and neither do VPC routers.
var (
	nextHop  = netip.MustParseAddr("169.254.100.1")
	nextHop6 = netip.MustParseAddr("fe80::64:1")
)

// GatewayIPv6 is the router of every IPv6 subnet, present on every link of the fabric.
var GatewayIPv6 = netip.MustParseAddr("fe80:ec2::1")

// router does the netlink work in the fabric's namespace. It is not safe for concurrent use.
type router struct {
	ns   *netns.NS
	nl   *netlink.Handle
	ipv6 bool // the kernel has IPv6
}

func newRouter() (*router, error) {
	ns, err := netns.Create("")
	if err != nil {
		return nil, err
	}
	r := &router{ns: ns}
	err = ns.Do(func() error {
		if err := writeSysctls(routerSysctls); err != nil {
			return err
		}
		_, noIPv6 := os.Stat("/proc/sys/net/ipv6")
		r.ipv6 = noIPv6 == nil
		r.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	// Packets without a route are dropped and never reach the outside.
	for _, all := range r.families() {
		if err := r.nl.RouteAdd(&netlink.Route{Dst: ipNet(all), Type: unix.RTN_BLACKHOLE}); err != nil {
			return nil, errors.Join(fmt.Errorf("add black hole route for %s: %w", all, err), r.close())
		}
	}
	return r, nil
}

// families returns the full range of each address family that the kernel can route.
func (r *router) families() []netip.Prefix {
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	if r.ipv6 {
		all = append(all, netip.MustParsePrefix("::/0"))
	}
	return all
}

func (r *router) close() error {
	r.nl.Close()
	return r.ns.Close()
}

// routerSysctls includes values that a new namespace copies from the machine.
var routerSysctls = map[string]string{
	"net/ipv4/ip_forward":                  "1",
	"net/ipv4/conf/all/rp_filter":          "0", // nftables does the source check (per ENI, counted)
	"net/ipv4/conf/default/rp_filter":      "0",
	"net/ipv4/conf/all/send_redirects":     "0",
	"net/ipv4/conf/default/send_redirects": "0",
	"net/ipv4/conf/default/proxy_arp":      "1",
	"net/ipv6/conf/all/disable_ipv6":       "0",
	"net/ipv6/conf/default/disable_ipv6":   "0",
	"net/ipv6/conf/all/forwarding":         "1",
	"net/ipv6/conf/default/forwarding":     "1",
	"net/ipv6/conf/default/accept_ra":      "0",
	"net/ipv6/conf/default/accept_dad":     "0",
	"net/ipv6/conf/default/addr_gen_mode":  "1", // links have only the gateway's address
}

// writeSysctls sets values in the namespace of the calling thread.
func writeSysctls(values map[string]string) error {
	for name, v := range values {
		err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(v), 0)
		if errors.Is(err, os.ErrNotExist) && strings.HasPrefix(name, "net/ipv6/") {
			continue // a kernel without IPv6
		}
		if err != nil {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return nil
}

// addLocal adds an address to the fabric itself.
func (r *router) addLocal(a netip.Addr) error {
	lo, err := r.nl.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	err = r.nl.AddrReplace(lo, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, a.BitLen()))})
	if err != nil {
		return fmt.Errorf("add address %s: %w", a, err)
	}
	return nil
}

// addLink creates the veth pair of an ENI: the near end here, up; the far end in the
// node, down, with the ENI's MAC.
func (r *router) addLink(near, far string, mac net.HardwareAddr, node *netns.NS) (index int, err error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Flags = near, MTU, net.FlagUp
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerMTU, pair.PeerHardwareAddr = far, MTU, mac
	pair.PeerNamespace = netlink.NsFd(node.FD())
	if err := r.nl.LinkAdd(pair); err != nil {
		return 0, fmt.Errorf("add link %s in node: %w", far, err)
	}
	return r.setUp(near, mac)
}

// errNoVLAN means that the kernel has no 802.1q VLAN.
var errNoVLAN = errors.New("the kernel has no VLAN")

// addVLAN creates the link of a branch ENI: a VLAN on its trunk's near end.
func (r *router) addVLAN(name string, trunk, id int, mac net.HardwareAddr) (index int, err error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex, attrs.Flags = name, trunk, net.FlagUp
	err = r.nl.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: id})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return 0, errNoVLAN
	}
	if err != nil {
		return 0, fmt.Errorf("add VLAN %d: %w", id, err)
	}
	return r.setUp(name, mac)
}

// setUp points a near end at its ENI.
func (r *router) setUp(near string, mac net.HardwareAddr) (index int, err error) {
	link, err := r.nl.LinkByName(near)
	if err != nil {
		return 0, fmt.Errorf("find link %s: %w", near, err)
	}
	index = link.Attrs().Index
	if err := r.addNeighbours(link, mac); err != nil {
		return 0, errors.Join(fmt.Errorf("set up link %s: %w", near, err), r.delLink(index))
	}
	// Without this, proxy ARP answers are delayed by up to 0.8 s. Only the machine's own
	// namespace has a default for this setting.
	err = r.ns.Do(func() error {
		return writeSysctls(map[string]string{"net/ipv4/neigh/" + near + "/proxy_delay": "0"})
	})
	if err != nil {
		return 0, errors.Join(err, r.delLink(index))
	}
	return index, nil
}

// addNeighbours points the next hops of a link at its ENI, and gives the link the
// IPv6 gateway.
func (r *router) addNeighbours(link netlink.Link, mac net.HardwareAddr) error {
	index := link.Attrs().Index
	hops := []netip.Addr{nextHop}
	if r.ipv6 {
		hops = append(hops, nextHop6)
		gateway := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(GatewayIPv6, 64)), Flags: unix.IFA_F_NODAD}
		if err := r.nl.AddrAdd(link, gateway); err != nil {
			return fmt.Errorf("add gateway %s: %w", GatewayIPv6, err)
		}
	}
	for _, hop := range hops {
		err := r.nl.NeighSet(&netlink.Neigh{LinkIndex: index, State: netlink.NUD_PERMANENT, IP: hop.AsSlice(), HardwareAddr: mac})
		if err != nil {
			return fmt.Errorf("add neighbour %s: %w", hop, err)
		}
	}
	return nil
}

// delLink removes a link, its peer and its routes. A missing link is no error, since
// it also disappears with the node's namespace.
func (r *router) delLink(index int) error {
	err := r.nl.LinkDel(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}})
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove link %d: %w", index, err)
	}
	return nil
}

// addRoute sends a prefix to the ENI behind a link, replacing any other route for it.
func (r *router) addRoute(p netip.Prefix, link int) error {
	if err := r.nl.RouteReplace(eniRoute(p, link)); err != nil {
		return fmt.Errorf("route %s to link %d: %w", p, link, err)
	}
	return nil
}

// delRoute undoes addRoute. A route that disappeared with its link is no error.
func (r *router) delRoute(p netip.Prefix, link int) error {
	err := r.nl.RouteDel(eniRoute(p, link))
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove route of %s: %w", p, err)
	}
	return nil
}

func eniRoute(p netip.Prefix, link int) *netlink.Route {
	if p.Addr().Is6() {
		return &netlink.Route{Dst: ipNet(p), Gw: nextHop6.AsSlice(), LinkIndex: link}
	}
	return &netlink.Route{Dst: ipNet(p), Gw: nextHop.AsSlice(), LinkIndex: link, Flags: int(netlink.FLAG_ONLINK)}
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
