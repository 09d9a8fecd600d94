package vpc_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
)

// ipRoute prints the main table's routes to pods and inside pods, as `ip route` does.
func ipRoute(t *testing.T, ns *netns.NS) string {
	t.Helper()
	var out strings.Builder
	do(t, ns, func() error {
		list, err := netns.Dump(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return err
		}
		for _, r := range list {
			l, err := netlink.LinkByIndex(r.LinkIndex)
			if err != nil {
				return err
			}
			dst := "default"
			if ones, _ := r.Dst.Mask.Size(); ones == 32 {
				dst = r.Dst.IP.String()
			} else if ones > 0 {
				dst = r.Dst.String()
			}
			out.WriteString(dst)
			if r.Gw != nil {
				out.WriteString(" via " + r.Gw.String())
			}
			out.WriteString(" dev " + l.Attrs().Name + " ")
			if r.Scope == netlink.SCOPE_LINK {
				out.WriteString("scope link ")
			}
			out.WriteString("\n")
		}
		return nil
	})
	return out.String()
}

// ipRule prints the rules as `ip rule` does.
func ipRule(t *testing.T, ns *netns.NS) string {
	t.Helper()
	var lines []string
	do(t, ns, func() error {
		list, err := netns.Dump(func() ([]netlink.Rule, error) { return netlink.RuleList(netlink.FAMILY_V4) })
		for _, r := range list {
			from := "all"
			if r.Src != nil {
				from = r.Src.IP.String()
			}
			line := fmt.Sprintf("%d:\tfrom %s ", r.Priority, from)
			if r.Dst != nil {
				line += "to " + r.Dst.IP.String() + " "
			}
			table := map[int]string{255: "local", 254: "main", 253: "default"}[r.Table]
			if table == "" {
				table = fmt.Sprint(r.Table)
			}
			lines = append(lines, line+"lookup "+table+"\n")
		}
		return err
	})
	slices.SortStableFunc(lines, func(a, b string) int {
		var x, y int
		fmt.Sscan(strings.Replace(a, ":", " ", 1), &x)
		fmt.Sscan(strings.Replace(b, ":", " ", 1), &y)
		return x - y
	})
	return strings.Join(lines, "")
}

const emptyRules = "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n"

func linkNames(t *testing.T, ns *netns.NS) (out []string) {
	t.Helper()
	do(t, ns, func() error {
		list, err := netns.Dump(netlink.LinkList)
		for _, l := range list {
			out = append(out, l.Attrs().Name)
		}
		return err
	})
	slices.Sort(out)
	return out
}

func hostMAC(t *testing.T, ns *netns.NS, name string) (out net.HardwareAddr) {
	t.Helper()
	do(t, ns, func() error {
		l, err := netlink.LinkByName(name)
		if err == nil {
			out = l.Attrs().HardwareAddr
		}
		return err
	})
	return out
}

func neighbour(t *testing.T, ns *netns.NS) (out string) {
	t.Helper()
	do(t, ns, func() error {
		list, err := netns.Dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, netlink.FAMILY_V4) })
		for _, n := range list {
			if n.State == netlink.NUD_PERMANENT {
				out += fmt.Sprintf("%s dev eth0 lladdr %s PERMANENT \n", n.IP, n.HardwareAddr)
			}
		}
		return err
	})
	return out
}

func do(t *testing.T, ns *netns.NS, f func() error) {
	t.Helper()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}
