package apply_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
)

// state reads a namespace back with a library that shares nothing with rtnl, as lines
// in the style of iproute2. Names replace interface indexes.
func state(t *testing.T, ns *netns.NS) []string {
	t.Helper()
	var out []string
	if err := ns.Do(func() error {
		links, err := netns.Dump(netlink.LinkList)
		if err != nil {
			return err
		}
		names := map[int]string{}
		for _, l := range links {
			names[l.Attrs().Index] = l.Attrs().Name
			out = append(out, linkLine(l))
		}
		for _, read := range []func(map[int]string) ([]string, error){addresses, routes, rules, neighbours} {
			lines, err := read(names)
			if err != nil {
				return err
			}
			out = append(out, lines...)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func linkLine(l netlink.Link) string {
	a := l.Attrs()
	return fmt.Sprintf("link %s %s mtu %d qlen %d up %t", a.Name, l.Type(), a.MTU, a.TxQLen, a.RawFlags&unix.IFF_UP != 0)
}

func addresses(names map[int]string) ([]string, error) {
	list, err := netns.Dump(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_V4) })
	var out []string
	for _, a := range list {
		out = append(out, fmt.Sprintf("addr %s dev %s scope %d broadcast %v", a.IPNet, names[a.LinkIndex], a.Scope, a.Broadcast))
	}
	return out, err
}

func routes(names map[int]string) ([]string, error) {
	list, err := netns.Dump(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	})
	var out []string
	for _, r := range list {
		if r.Table != unix.RT_TABLE_LOCAL {
			out = append(out, fmt.Sprintf("route %v via %v dev %s table %d scope %v proto %v src %v", r.Dst, r.Gw, names[r.LinkIndex], r.Table, r.Scope, r.Protocol, r.Src))
		}
	}
	return out, err
}

func rules(map[int]string) ([]string, error) {
	list, err := netns.Dump(func() ([]netlink.Rule, error) { return netlink.RuleList(netlink.FAMILY_V4) })
	var out []string
	for _, r := range list {
		out = append(out, fmt.Sprintf("rule %d from %v to %v lookup %d", r.Priority, r.Src, r.Dst, r.Table))
	}
	return out, err
}

func neighbours(names map[int]string) ([]string, error) {
	list, err := netns.Dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, netlink.FAMILY_V4) })
	var out []string
	for _, n := range list {
		if n.State == netlink.NUD_PERMANENT {
			out = append(out, fmt.Sprintf("neigh %v dev %s lladdr %v", n.IP, names[n.LinkIndex], n.HardwareAddr))
		}
	}
	return out, err
}

func sysctl(t *testing.T, ns *netns.NS, key string) string {
	t.Helper()
	var out string
	if err := ns.Do(func() error {
		b, err := os.ReadFile("/proc/sys/net/" + key)
		out = strings.TrimSpace(string(b))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// link returns a link with its details.
func link(t *testing.T, ns *netns.NS, name string) netlink.Link {
	t.Helper()
	var out netlink.Link
	if err := ns.Do(func() (err error) {
		out, err = netlink.LinkByName(name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func do(t *testing.T, ns *netns.NS, f func() error) {
	t.Helper()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}
