package apply_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/plugin/podnet/apply"
	podrules "cnictl/plugin/podnet/rules"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// podOf lays out a pod named web-2 with one interface per address, all of the same
// family. The ENIs have the tables 2, 10102, ...
func podOf(t *testing.T, sandbox string, addresses ...string) podrules.Pod {
	t.Helper()
	var list []podrules.Attachment
	for i, a := range addresses {
		pair := podrules.NewPair(sandbox, netnames.HostVeth("eni", "default", "web-2", i), netnames.PodInterface("eth0", i), 9001).Further(i)
		list = append(list, podrules.Attachment{Pair: pair, Address: netip.MustParseAddr(a), Table: []int{2, 10102}[min(i, 1)]})
	}
	p, err := podrules.NewPod(list...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// hostAddress gives the node an address on lo, in place of the one on its primary ENI.
func hostAddress(t *testing.T, node *netns.NS, address string) netip.Addr {
	t.Helper()
	do(t, node, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		a.Flags = unix.IFA_F_NODAD
		return netlink.AddrAdd(lo, a)
	})
	return netip.MustParsePrefix(address).Addr()
}

// connects opens a TCP connection. With IPv6 no packet may be lost or wait for a second
// neighbour solicitation, which comes after a second.
func connects(t *testing.T, what string, from, to *netns.NS, source, address netip.Addr) {
	t.Helper()
	echo, err := to.EchoTCP(netip.AddrPortFrom(address, 0))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer echo.Close()
	if address.Is6() {
		_, err = from.AskEchoAtOnce(t.Context(), source, echo.Addr, testenv.Left(t), 900*time.Millisecond) //realtime: the kernel measures it
	} else {
		_, err = from.AskEcho(t.Context(), "tcp", source, echo.Addr, testenv.Left(t))
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// TestSetup_IPv6: the first packet gets through in both directions, even if the node's
// defaults disable IPv6 on new links.
func TestSetup_IPv6(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	for _, disabled := range []bool{false, true} {
		for _, hostFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("disabled=%t hostFirst=%t", disabled, hostFirst), func(t *testing.T) {
				t.Parallel()
				node, pod := netns.New(t), netns.New(t)
				nodeIP := hostAddress(t, node, "2001:db8:1::1/128")
				if disabled {
					do(t, pod, func() error {
						for _, conf := range []string{"default", "lo"} {
							if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+conf+"/disable_ipv6", []byte("1"), 0); err != nil {
								return err
							}
						}
						return nil
					})
				}
				p := podOf(t, "sandbox", "2001:db8::22")
				if _, err := setup(node, pod, p); err != nil {
					t.Fatal(err)
				}
				podIP := netip.MustParseAddr("2001:db8::22")
				ways := []func(){
					func() { connects(t, "host to pod", node, pod, netip.Addr{}, podIP) },
					func() { connects(t, "pod to host", pod, node, netip.Addr{}, nodeIP) },
				}
				if !hostFirst {
					slices.Reverse(ways)
				}
				for _, way := range ways {
					way()
				}
				checkIPv6(t, node, pod, p)
			})
		}
	}
}

func checkIPv6(t *testing.T, node, pod *netns.NS, p podrules.Pod) {
	t.Helper()
	f := &p.Interfaces[0]
	mac := link(t, node, hostLink).Attrs().HardwareAddr.String()
	for what, want := range map[*netns.NS][]string{
		node: {
			"route 2001:db8::22/128 dev " + hostLink + " table 254",
			"rule 512 to 2001:db8::22/128 lookup 254",
			"rule 1536 from 2001:db8::22/128 lookup 2",
			"addr " + f.HostAddress.Addr().String() + " dev " + hostLink,
		},
		pod: {
			"route ::/0 via fe80::1 dev eth0 table 254",
			"route fe80::1/128 dev eth0 table 254",
			"addr 2001:db8::22 dev eth0",
			"neigh fe80::1 dev eth0 lladdr " + mac,
		},
	} {
		got := state6(t, what)
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("no %q in\n%s", line, strings.Join(got, "\n"))
			}
		}
		for _, line := range got {
			// The kernel adds the pod's own link-local address. Nothing waits for it, and without
			// duplicate address detection it is usable as soon as the kernel has processed it.
			if strings.Contains(line, "tentative") && (what != pod || !strings.HasPrefix(line, "addr fe80::")) {
				t.Error(line)
			}
		}
	}
	testenv.EventuallyErr(t, "no address is tentative", func() error {
		if state := strings.Join(state6(t, pod), "\n"); strings.Contains(state, "tentative") {
			return errors.New(state)
		}
		return nil
	})
	for what, pair := range map[string][2]string{
		"host accept_dad":  {"0", sysctl(t, node, "ipv6/conf/"+hostLink+"/accept_dad")},
		"pod accept_dad":   {"0", sysctl(t, pod, "ipv6/conf/eth0/accept_dad")},
		"pod disable_ipv6": {"0", sysctl(t, pod, "ipv6/conf/eth0/disable_ipv6")},
		"lo disable_ipv6":  {"0", sysctl(t, pod, "ipv6/conf/lo/disable_ipv6")},
		"host forwarding":  {"0", sysctl(t, node, "ipv6/conf/"+hostLink+"/forwarding")},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %s, want %s", what, pair[1], pair[0])
		}
	}
}

// state6 reads the IPv6 state of a namespace.
func state6(t *testing.T, ns *netns.NS) []string {
	t.Helper()
	var out []string
	do(t, ns, func() error {
		links, err := netns.Dump(netlink.LinkList)
		if err != nil {
			return err
		}
		names := map[int]string{}
		for _, l := range links {
			names[l.Attrs().Index] = l.Attrs().Name
		}
		addrs, err := netns.Dump(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_V6) })
		if err != nil {
			return err
		}
		for _, a := range addrs {
			line := fmt.Sprintf("addr %v dev %s", a.IP, names[a.LinkIndex])
			if a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0 {
				line += " tentative"
			}
			out = append(out, line)
		}
		list, err := netns.Dump(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return err
		}
		for _, r := range list {
			if r.Table == unix.RT_TABLE_LOCAL {
				continue
			}
			line := fmt.Sprintf("route %v", r.Dst)
			if r.Gw != nil {
				line += " via " + r.Gw.String()
			}
			out = append(out, line+fmt.Sprintf(" dev %s table %d", names[r.LinkIndex], r.Table))
		}
		ruleList, err := netns.Dump(func() ([]netlink.Rule, error) { return netlink.RuleList(netlink.FAMILY_V6) })
		if err != nil {
			return err
		}
		for _, r := range ruleList {
			line := fmt.Sprintf("rule %d", r.Priority)
			for word, n := range map[string]*net.IPNet{" from ": r.Src, " to ": r.Dst} {
				if n != nil {
					line += word + n.String()
				}
			}
			if r.IifName != "" {
				line += " iif " + r.IifName
			}
			out = append(out, line+fmt.Sprintf(" lookup %d", r.Table))
		}
		neighs, err := netns.Dump(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, netlink.FAMILY_V6) })
		for _, n := range neighs {
			if n.State == netlink.NUD_PERMANENT {
				out = append(out, fmt.Sprintf("neigh %v dev %s lladdr %v", n.IP, names[n.LinkIndex], n.HardwareAddr))
			}
		}
		return err
	})
	slices.Sort(out)
	return out
}

// TestSetup_IPv6Again: the same sandbox once more, then a newer one of the pod.
func TestSetup_IPv6Again(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	node, pod, next := netns.New(t), netns.New(t), netns.New(t)
	nodeIP := hostAddress(t, node, "2001:db8:1::1/128")
	for _, row := range []struct {
		into             *netns.NS
		sandbox, address string
	}{{pod, "old", "2001:db8::22"}, {pod, "old", "2001:db8::22"}, {next, "new", "2001:db8::23"}} {
		if _, err := setup(node, row.into, podOf(t, row.sandbox, row.address)); err != nil {
			t.Fatal(err)
		}
		connects(t, row.sandbox, node, row.into, nodeIP, netip.MustParseAddr(row.address))
	}
	teardown(t, node, "2001:db8::22", 2)
	connects(t, "after DEL of the old", node, next, netip.Addr{}, netip.MustParseAddr("2001:db8::23"))
}

func TestSetup_SeveralInterfaces(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	node, pod := netns.New(t), netns.New(t)
	nodeIP := hostAddress(t, node, "192.0.2.1/32")
	before := state(t, node)
	second := netnames.HostVeth("eni", "default", "web-2", 1)
	p := podOf(t, "sandbox", "10.0.0.22", "10.2.0.7")
	if _, err := setup(node, pod, p); err != nil {
		t.Fatal(err)
	}
	wantNode := append(slices.Clone(before),
		"rule 512 from <nil> to 10.0.0.22/32 lookup 254",
		"rule 1536 from 10.0.0.22/32 to <nil> lookup 2",
		"rule 512 from <nil> to 10.2.0.7/32 lookup 254",
		"rule 1536 from 10.2.0.7/32 to <nil> lookup 10102",
		"link "+hostLink+" veth mtu 9001 qlen 0 up true",
		"link "+second+" veth mtu 9001 qlen 0 up true",
		"route 10.0.0.22/32 via <nil> dev "+hostLink+" table 254 scope link proto boot src <nil>",
		"route 10.2.0.7/32 via <nil> dev "+second+" table 254 scope link proto boot src <nil>",
	)
	slices.Sort(wantNode)
	if diff := cmp.Diff(wantNode, state(t, node)); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	wantPod := slices.Concat(defaultRules, []string{
		"addr 127.0.0.1/8 dev lo scope 254 broadcast <nil>",
		"addr 10.0.0.22/32 dev eth0 scope 0 broadcast <nil>",
		"addr 10.2.0.7/32 dev mNicIf1 scope 0 broadcast <nil>",
		"link lo device mtu 65536 qlen 1000 up true",
		"link eth0 veth mtu 9001 qlen 0 up true",
		"link mNicIf1 veth mtu 9001 qlen 0 up true",
		"neigh 169.254.1.1 dev eth0 lladdr " + link(t, node, hostLink).Attrs().HardwareAddr.String(),
		"neigh 169.254.1.2 dev mNicIf1 lladdr " + link(t, node, second).Attrs().HardwareAddr.String(),
		"route 0.0.0.0/0 via 169.254.1.1 dev eth0 table 254 scope universe proto boot src <nil>",
		"route 169.254.1.1/32 via <nil> dev eth0 table 254 scope link proto boot src <nil>",
		"route 0.0.0.0/0 via 169.254.1.2 dev mNicIf1 table 1 scope universe proto boot src <nil>",
		"route 169.254.1.2/32 via <nil> dev mNicIf1 table 1 scope link proto boot src <nil>",
		"rule 1 from 10.2.0.7/32 to <nil> lookup 1",
	})
	slices.Sort(wantPod)
	if diff := cmp.Diff(wantPod, state(t, pod)); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	// Each address answers, and replies to each as a source return over its own link.
	for _, address := range []string{"10.0.0.22", "10.2.0.7"} {
		own := netip.MustParseAddr(address)
		connects(t, "host to "+address, node, pod, nodeIP, own)
		connects(t, "host from "+address, pod, node, own, nodeIP)
	}
	teardown(t, node, "10.0.0.22", 2)
	teardown(t, node, "10.2.0.7", 10102)
	do(t, node, func() error { return netlink.LinkDel(link(t, node, hostLink)) })
	do(t, node, func() error { return netlink.LinkDel(link(t, node, second)) })
	if diff := cmp.Diff(before, state(t, node)); diff != "" {
		t.Errorf("left behind (-before +after):\n%s", diff)
	}
}

func TestSetup_SeveralIPv6(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	node, pod := netns.New(t), netns.New(t)
	nodeIP := hostAddress(t, node, "2001:db8:1::1/128")
	if _, err := setup(node, pod, podOf(t, "sandbox", "2001:db8::22", "2001:db8:2::7")); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"2001:db8::22", "2001:db8:2::7"} {
		own := netip.MustParseAddr(address)
		connects(t, "host to "+address, node, pod, nodeIP, own)
		connects(t, "host from "+address, pod, node, own, nodeIP)
	}
	got := state6(t, pod)
	for _, line := range []string{"route ::/0 via fe80::2 dev mNicIf1 table 1", "route fe80::2/128 dev mNicIf1 table 1", "rule 1 from 2001:db8:2::7/128 lookup 1"} {
		if !slices.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, strings.Join(got, "\n"))
		}
	}
}

// TestSetup_KindsLeaveNothing makes steps of an IPv6 pod with two interfaces fail and
// expects both namespaces to be as before.
func TestSetup_KindsLeaveNothing(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	ipv4 := netip.MustParsePrefix("10.0.0.1/32") // of the other family, which the kernel refuses in a rule
	for name, row := range map[string]struct {
		step   apply.Step
		nth    int // index of the interface
		change func(*podrules.Interface)
	}{
		"second pair":    {apply.StepCreatePair, 1, func(f *podrules.Interface) { f.Pair.Host.Name = "a/b" }},
		"second sysctl":  {apply.StepRedirects, 1, func(f *podrules.Interface) { f.Pair.Sysctls[1].Value = "x" }},
		"accept_dad":     {apply.StepHostAddress, 1, func(f *podrules.Interface) { f.HostSysctls[0].Value = "x" }},
		"host address":   {apply.StepHostAddress, 1, func(f *podrules.Interface) { f.HostAddress = netip.MustParsePrefix("ff02::1/128") }},
		"enable IPv6":    {apply.StepEnableIPv6, 0, func(f *podrules.Interface) { f.PodSysctls[0].Value = "x" }},
		"enable on lo":   {apply.StepEnableIPv6Lo, 1, func(f *podrules.Interface) { f.PodSysctls[2].Path = "net/ipv6/conf/lo/." }},
		"gateway":        {apply.StepGateway, 1, func(f *podrules.Interface) { f.Gateway.Gateway = netip.MustParseAddr("2001:db8:9::1") }},
		"interface rule": {apply.StepInterfaceRule, 1, func(f *podrules.Interface) { f.Rule.To = ipv4 }},
		"default":        {apply.StepDefaultRoute, 1, func(f *podrules.Interface) { f.Default.Gateway = netip.MustParseAddr("2001:db8:9::1") }},
		"address":        {apply.StepAddress, 1, func(f *podrules.Interface) { f.Address = netip.MustParsePrefix("ff02::1/128") }},
		"host route":     {apply.StepHostRoute, 1, func(f *podrules.Interface) { f.ToPod.Gateway = netip.MustParseAddr("2001:db8:9::1") }},
		"rule to pod":    {apply.StepToPodRule, 1, func(f *podrules.Interface) { f.Rules[0].From = ipv4 }},
		"rule from pod":  {apply.StepFromPodRule, 1, func(f *podrules.Interface) { f.Rules[1].To = ipv4 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, pod := netns.New(t), netns.New(t)
			look := func() [4][]string {
				return [4][]string{state(t, node), state(t, pod), state6(t, node), state6(t, pod)}
			}
			before := look()
			p := podOf(t, "sandbox", "2001:db8::22", "2001:db8:2::7")
			row.change(&p.Interfaces[row.nth])
			_, err := setup(node, pod, p)
			var step *apply.StepError
			if !errors.As(err, &step) || step.Step != row.step || step.Interface != row.nth {
				t.Errorf("got step %q, %v; want %q of interface %d", apply.FailedStep(err), err, row.step, row.nth)
			}
			if diff := cmp.Diff(before, look()); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}
		})
	}
}
