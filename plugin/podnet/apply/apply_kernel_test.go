package apply_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/plugin/podnet/apply"
	podrules "cnictl/plugin/podnet/rules"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

const hostLink = "eni9fb0db7f13e" // default/web-2

func wanted(t *testing.T, sandbox, address string, table int) podrules.Pod {
	t.Helper()
	pair := podrules.NewPair(sandbox, hostLink, "eth0", 9001)
	return wantedOn(t, pair, address, table)
}

func wantedOn(t *testing.T, pair podrules.Pair, address string, table int) podrules.Pod {
	t.Helper()
	p, err := podrules.NewPod(podrules.Attachment{Pair: pair, Address: netip.MustParseAddr(address), Table: table})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// setup applies p on the node and, as the plugin does, undoes it on failure.
func setup(node, pod *netns.NS, p podrules.Pod) (replaced bool, err error) {
	err = node.Do(func() error {
		ns, err := apply.OpenNetns(pod.Path)
		if err != nil {
			return err
		}
		defer ns.Close()
		s, err := apply.Begin(ns, apply.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		err = s.Network(p)
		replaced = s.Replaced
		if err != nil {
			return errors.Join(err, s.Undo())
		}
		return nil
	})
	return replaced, err
}

func teardown(t *testing.T, node *netns.NS, address string, table int) {
	t.Helper()
	td, err := podrules.NewTeardown(netip.MustParseAddr(address), table)
	if err != nil {
		t.Fatal(err)
	}
	do(t, node, func() error {
		routeErr, err := apply.Teardown(td)
		return errors.Join(routeErr, err)
	})
}

// defaultRules are the rules of every new namespace.
var defaultRules = []string{
	"rule 0 from <nil> to <nil> lookup 255",
	"rule 32766 from <nil> to <nil> lookup 254",
	"rule 32767 from <nil> to <nil> lookup 253",
}

func TestSetup_ReadBack(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	for _, row := range []struct {
		address string
		table   int
		rules   []string
	}{
		{"10.0.0.12", 254, []string{"rule 512 from <nil> to 10.0.0.12/32 lookup 254"}},
		{"10.0.0.22", 2, []string{
			"rule 512 from <nil> to 10.0.0.22/32 lookup 254",
			"rule 1536 from 10.0.0.22/32 to <nil> lookup 2",
		}},
		{"10.0.0.23", 10102, []string{
			"rule 512 from <nil> to 10.0.0.23/32 lookup 254",
			"rule 1536 from 10.0.0.23/32 to <nil> lookup 10102",
		}},
	} {
		t.Run(fmt.Sprint(row.table), func(t *testing.T) {
			t.Parallel()
			node, pod := netns.New(t), netns.New(t)
			before := state(t, node)
			p := wanted(t, "sandbox", row.address, row.table)
			if _, err := setup(node, pod, p); err != nil {
				t.Fatal(err)
			}
			wantNode := slices.Concat(defaultRules, row.rules, []string{
				"addr 127.0.0.1/8 dev lo scope 254 broadcast <nil>",
				"link lo device mtu 65536 qlen 1000 up true",
				"link " + hostLink + " veth mtu 9001 qlen 0 up true",
				"route " + row.address + "/32 via <nil> dev " + hostLink + " table 254 scope link proto boot src <nil>",
			})
			slices.Sort(wantNode)
			if diff := cmp.Diff(wantNode, state(t, node)); diff != "" {
				t.Errorf("node (-want +got):\n%s", diff)
			}
			mac := link(t, node, hostLink).Attrs().HardwareAddr.String()
			wantPod := slices.Concat(defaultRules, []string{
				"addr 127.0.0.1/8 dev lo scope 254 broadcast <nil>",
				"addr " + row.address + "/32 dev eth0 scope 0 broadcast <nil>",
				"link lo device mtu 65536 qlen 1000 up true",
				"link eth0 veth mtu 9001 qlen 0 up true",
				"neigh 169.254.1.1 dev eth0 lladdr " + mac,
				"route 0.0.0.0/0 via 169.254.1.1 dev eth0 table 254 scope universe proto boot src <nil>",
				"route 169.254.1.1/32 via <nil> dev eth0 table 254 scope link proto boot src <nil>",
			})
			slices.Sort(wantPod)
			if diff := cmp.Diff(wantPod, state(t, pod)); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
			checkDetails(t, node, pod, p)
			ping(t, node, pod, row.address)

			teardown(t, node, row.address, row.table)
			teardown(t, node, row.address, row.table) // nothing is left, which is fine
			do(t, node, func() error { return netlink.LinkDel(link(t, node, hostLink)) })
			if diff := cmp.Diff(before, state(t, node)); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}
		})
	}
}

// checkDetails compares what the lines do not show.
func checkDetails(t *testing.T, node, pod *netns.NS, p podrules.Pod) {
	t.Helper()
	host, inside := link(t, node, hostLink).Attrs(), link(t, pod, "eth0").Attrs()
	for what, pair := range map[string][2]any{
		"host index":    {int(p.Interfaces[0].Pair.Host.Index), host.Index},
		"pod index":     {2, inside.Index},
		"host peer":     {inside.Index, host.ParentIndex},
		"pod peer":      {host.Index, inside.ParentIndex},
		"host mac":      {p.Interfaces[0].Pair.Host.MAC.String(), host.HardwareAddr.String()},
		"pod mac":       {p.Interfaces[0].Pair.Pod.MAC.String(), inside.HardwareAddr.String()},
		"host oper":     {netlink.LinkOperState(netlink.OperUp), host.OperState},
		"pod oper":      {netlink.LinkOperState(netlink.OperUp), inside.OperState},
		"accept_ra":     {"0", sysctl(t, node, "ipv6/conf/"+hostLink+"/accept_ra")},
		"redirects":     {"1", sysctl(t, node, "ipv6/conf/"+hostLink+"/accept_redirects")},
		"forwarding":    {"0", sysctl(t, node, "ipv6/conf/"+hostLink+"/forwarding")},
		"pod accept_ra": {"1", sysctl(t, pod, "ipv6/conf/eth0/accept_ra")},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v, want %v", what, pair[1], pair[0])
		}
	}
}

// ping goes from the node to the pod and back. The node needs a source address.
func ping(t *testing.T, node, pod *netns.NS, address string) {
	t.Helper()
	do(t, node, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(192, 0, 2, 1), Mask: net.CIDRMask(32, 32)}})
	})
	if err := netns.Ping(node, netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr(address), testenv.Left(t)); err != nil {
		t.Errorf("node to pod: %v", err)
	}
	if err := netns.Ping(pod, netip.Addr{}, netip.MustParseAddr("192.0.2.1"), testenv.Left(t)); err != nil {
		t.Errorf("pod to node: %v", err)
	}
	do(t, node, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.AddrDel(lo, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(192, 0, 2, 1), Mask: net.CIDRMask(32, 32)}})
	})
}

func TestSetup_ForwardingIsWrittenWhenOn(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	node, pod := netns.New(t), netns.New(t)
	do(t, node, func() error {
		for key, v := range map[string]string{"forwarding": "1", "accept_redirects": "0", "accept_ra": "2"} {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/"+key, []byte(v), 0); err != nil {
				return err
			}
		}
		return nil
	})
	p := wanted(t, "sandbox", "10.0.0.12", 254)
	if _, err := setup(node, pod, p); err != nil {
		t.Fatal(err)
	}
	checkDetails(t, node, pod, p)
}

func TestSetup_TwiceAndStale(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	node, pod, next := netns.New(t), netns.New(t), netns.New(t)
	first := wanted(t, "sandbox", "10.0.0.22", 2)
	if _, err := setup(node, pod, first); err != nil {
		t.Fatal(err)
	}
	once := [2][]string{state(t, node), state(t, pod)}

	// The same sandbox again: same indexes, same names.
	replaced, err := setup(node, pod, first)
	if err != nil || !replaced {
		t.Fatalf("second ADD: replaced %t, %v", replaced, err)
	}
	if diff := cmp.Diff(once, [2][]string{state(t, node), state(t, pod)}); diff != "" {
		t.Errorf("after the second ADD (-once +twice):\n%s", diff)
	}

	// Another sandbox of the same pod: the old link is removed, the new one works.
	second := wanted(t, "sandbox2", "10.0.0.23", 254)
	replaced, err = setup(node, next, second)
	if err != nil || !replaced {
		t.Fatalf("ADD of a new sandbox: replaced %t, %v", replaced, err)
	}
	checkDetails(t, node, next, second)
	// DEL of the old sandbox does not touch the new one.
	teardown(t, node, "10.0.0.22", 2)
	checkDetails(t, node, next, second)
	ping(t, node, next, "10.0.0.23")
}

// TestSetup_OldSandboxGoesMeanwhile: a pod comes back under its name while the kernel is
// removing the older sandbox's link. Whenever that happens, the new link is created.
func TestSetup_OldSandboxGoesMeanwhile(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	node := netns.New(t)
	for i := range 20 {
		old, err := netns.Create(fmt.Sprintf("old-%d-%d", os.Getpid(), i))
		if err != nil {
			t.Fatal(err)
		}
		_, setupErr := setup(node, old, wanted(t, fmt.Sprint("old", i), "10.0.0.22", 2))
		if err := errors.Join(setupErr, old.Close()); err != nil { // the kernel begins to remove the link
			t.Fatal(err)
		}
		next, err := netns.Create(fmt.Sprintf("next-%d-%d", os.Getpid(), i))
		if err != nil {
			t.Fatal(err)
		}
		_, setupErr = setup(node, next, wanted(t, fmt.Sprint("next", i), "10.0.0.23", 2))
		if err := errors.Join(setupErr, next.Close()); err != nil {
			t.Fatalf("pod %d: %v", i, err)
		}
	}
}

func TestSetup_IndexesTaken(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	node, pod := netns.New(t), netns.New(t)
	p := wanted(t, "sandbox", "10.0.0.22", 2)
	occupy(t, node, "other0", int(p.Interfaces[0].Pair.Host.Index))
	occupy(t, node, "other1", int(p.Interfaces[0].Pair.Host.Index)+1)
	occupy(t, pod, "net1", 3) // its peer takes 2
	if _, err := setup(node, pod, p); err != nil {
		t.Fatal(err)
	}
	host, inside := link(t, node, hostLink).Attrs(), link(t, pod, "eth0").Attrs()
	if host.Index != int(p.Interfaces[0].Pair.Host.Index)+2 || inside.Index != 4 {
		t.Errorf("indexes %d and %d, want %d and 4", host.Index, inside.Index, p.Interfaces[0].Pair.Host.Index+2)
	}
	ping(t, node, pod, "10.0.0.22")
}

// occupy creates a link with the given index. Its peer gets the next free one.
func occupy(t *testing.T, ns *netns.NS, name string, index int) {
	t.Helper()
	do(t, ns, func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, Index: index}, PeerName: name + "peer"})
	})
}

// TestSetup_LeavesNothing makes each step fail and expects both namespaces to be as before.
func TestSetup_LeavesNothing(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	for _, row := range []struct {
		name    string
		step    apply.Step
		errno   unix.Errno
		prepare func(t *testing.T, node, pod *netns.NS)
		change  func(*podrules.Interface)
	}{
		{
			name: "name inside the pod", step: apply.StepCreatePair, errno: unix.EEXIST,
			prepare: func(t *testing.T, _, pod *netns.NS) {
				do(t, pod, func() error {
					return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0", Index: 20}, PeerName: "x"})
				})
			},
		},
		{
			name: "pair refused", step: apply.StepCreatePair, errno: unix.EINVAL,
			change: func(p *podrules.Interface) { p.Pair.Host.Name = "a/b" },
		},
		{
			name: "sysctl refused", step: apply.StepAcceptRA, errno: unix.EINVAL,
			change: func(p *podrules.Interface) { p.Pair.Sysctls[0].Value = "x" },
		},
		{
			name: "redirects refused", step: apply.StepRedirects, errno: unix.EINVAL,
			change: func(p *podrules.Interface) { p.Pair.Sysctls[1].Value = "x" },
		},
		{
			name: "forwarding refused", step: apply.StepForwarding, errno: unix.EINVAL,
			change: func(p *podrules.Interface) { p.Pair.Sysctls[2].Value = "x" },
		},
		{
			name: "gateway route", step: apply.StepGateway, errno: unix.EINVAL,
			change: func(p *podrules.Interface) { p.Gateway.Dst = netip.MustParsePrefix("169.254.1.1/24") },
		},
		{
			name: "default route there", step: apply.StepDefaultRoute, errno: unix.EEXIST,
			prepare: func(t *testing.T, _, pod *netns.NS) {
				do(t, pod, func() error {
					lo, err := netlink.LinkByName("lo")
					if err != nil {
						return err
					}
					return netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Scope: netlink.SCOPE_LINK,
						Dst: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}})
				})
			},
		},
		{
			name: "address", step: apply.StepAddress, errno: unix.EACCES,
			prepare: func(t *testing.T, _, pod *netns.NS) {
				do(t, pod, func() error {
					return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
				})
			},
			change: func(p *podrules.Interface) { p.Address = netip.MustParsePrefix("fd00::1/128") },
		},
		{
			name: "neighbour", step: apply.StepNeighbour, errno: unix.EINVAL,
			// Below an MTU of 1280 a link has no IPv6, hence no IPv6 neighbours.
			change: func(p *podrules.Interface) { p.Pair.MTU, p.Neighbour.IP = 1000, netip.MustParseAddr("fe80::1") },
		},
		{
			name: "host route", step: apply.StepHostRoute, errno: unix.EINVAL,
			change: func(p *podrules.Interface) { p.ToPod.Dst = netip.MustParsePrefix("10.0.0.22/24") },
		},
		// The kernel refuses a rule that mixes families.
		{
			name: "rule from pod", step: apply.StepFromPodRule, errno: unix.EINVAL,
			change: func(p *podrules.Interface) { p.Rules[1].To = netip.MustParsePrefix("fd00::1/128") },
		},
		{
			name: "rule to pod", step: apply.StepToPodRule, errno: unix.EINVAL,
			change: func(p *podrules.Interface) {
				p.Rules[0].From, p.Rules[0].To = p.Address, netip.MustParsePrefix("fd00::1/128")
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			node, pod := netns.New(t), netns.New(t)
			if row.prepare != nil {
				row.prepare(t, node, pod)
			}
			before := [2][]string{state(t, node), state(t, pod)}
			p := wanted(t, "sandbox", "10.0.0.22", 2)
			if row.change != nil {
				row.change(&p.Interfaces[0])
			}
			_, err := setup(node, pod, p)
			if got := apply.FailedStep(err); got != row.step || !errors.Is(err, row.errno) {
				t.Errorf("got step %q, %v; want %q, %v", got, err, row.step, row.errno)
			}
			if diff := cmp.Diff(before, [2][]string{state(t, node), state(t, pod)}); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}
		})
	}
}

// TestSetup_StaleRules: rules left by an earlier owner of the address don't capture the
// new pod's traffic.
func TestSetup_StaleRules(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	for _, table := range []int{254, 2, 3} {
		t.Run(fmt.Sprint(table), func(t *testing.T) {
			t.Parallel()
			node, pod := netns.New(t), netns.New(t)
			do(t, node, func() error {
				for _, other := range []int{3, 4, 5} {
					r := netlink.NewRule()
					r.Priority, r.Table = netnames.RuleFromPod, other
					r.Src = &net.IPNet{IP: net.IPv4(10, 0, 0, 22).To4(), Mask: net.CIDRMask(32, 32)}
					if err := netlink.RuleAdd(r); err != nil {
						return err
					}
				}
				r := netlink.NewRule()
				r.Priority, r.Table = netnames.RuleToPod, netnames.MainTable
				r.Dst = &net.IPNet{IP: net.IPv4(10, 0, 0, 22).To4(), Mask: net.CIDRMask(32, 32)}
				return netlink.RuleAdd(r)
			})
			if _, err := setup(node, pod, wanted(t, "sandbox", "10.0.0.22", table)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range state(t, node) {
				if strings.HasPrefix(line, "rule ") && !slices.Contains(defaultRules, line) {
					got = append(got, line)
				}
			}
			want := []string{"rule 512 from <nil> to 10.0.0.22/32 lookup 254"}
			if table != 254 {
				want = append([]string{fmt.Sprintf("rule 1536 from 10.0.0.22/32 to <nil> lookup %d", table)}, want...)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTeardown_RuleLoop: old releases created one rule per VPC CIDR, identical but for
// the destination. Table 0 matches any table.
func TestTeardown_RuleLoop(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	for _, table := range []int{0, 2} {
		node := netns.New(t)
		before := state(t, node)
		do(t, node, func() error {
			for i := range 5 {
				r := netlink.NewRule()
				r.Priority, r.Table = netnames.RuleFromPod, 2
				r.Src = &net.IPNet{IP: net.IPv4(10, 0, 0, 22).To4(), Mask: net.CIDRMask(32, 32)}
				r.Dst = &net.IPNet{IP: net.IPv4(10, byte(i), 0, 0).To4(), Mask: net.CIDRMask(16, 32)}
				if err := netlink.RuleAdd(r); err != nil {
					return err
				}
			}
			return nil
		})
		teardown(t, node, "10.0.0.22", table)
		if diff := cmp.Diff(before, state(t, node)); diff != "" {
			t.Errorf("table %d left (-before +after):\n%s", table, diff)
		}
	}
}

func TestSetup_Parallel(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	const pods = 50
	node := netns.New(t)
	before := state(t, node)
	var wg sync.WaitGroup
	for i := range pods {
		pod := netns.New(t)
		pair := podrules.NewPair(fmt.Sprint("sandbox", i), netnames.HostVeth("eni", "default", fmt.Sprint("p", i), 0), "eth0", 1500)
		p := wantedOn(t, pair, fmt.Sprintf("10.0.1.%d", i+1), 254)
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, err := setup(node, pod, p); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if got := len(state(t, node)) - len(before); got != 3*pods {
		t.Errorf("%d lines of state for %d pods, want three each (link, route, rule)", got, pods)
	}
}

func TestOpenNetns_Refused(t *testing.T) {
	t.Parallel()
	testenv.RequireRoot(t)
	dir := t.TempDir()
	file, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, errno := range map[string]error{filepath.Join(dir, "none"): unix.ENOENT, file: nil, fifo: nil, dir: nil} {
		ns, err := apply.OpenNetns(path)
		var refused *apply.NetnsError
		if !errors.As(err, &refused) || refused.Path != path || !errors.Is(refused.Err, errno) {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			ns.Close()
		}
	}
	// A file on procfs that is no namespace: entering it fails.
	node := netns.New(t)
	_, err := setup(node, &netns.NS{Path: "/proc/self/status"}, wanted(t, "s", "10.0.0.1", 254))
	if step := apply.FailedStep(err); step != apply.StepCreatePair {
		t.Errorf("procfs file: step %q, %v", step, err)
	}
}

func TestOwn(t *testing.T) {
	t.Parallel()
	testenv.RequireRoot(t)
	node, pod := netns.New(t), netns.New(t)
	for _, row := range []struct {
		ns   *netns.NS
		want bool
	}{{node, true}, {pod, false}} {
		do(t, node, func() error {
			n, err := apply.OpenNetns(row.ns.Path)
			if err != nil {
				return err
			}
			defer n.Close()
			s, err := apply.Begin(n, apply.Options{})
			if err != nil {
				return err
			}
			defer s.Close()
			if own := s.Own(); own != row.want {
				t.Errorf("Own of %s: %t, want %t", row.ns.Name, own, row.want)
			}
			return nil
		})
	}
}

// TestSetup_FirstPacket: a packet that the host sends to the pod right after setup arrives.
// The kernel drops, and counts, packets on a link whose carrier change it has not yet
// processed; a retry would come a second later.
func TestSetup_FirstPacket(t *testing.T) {
	t.Parallel()
	testenv.RequireKernel(t, "veth")
	for range 10 {
		node, pod := netns.New(t), netns.New(t)
		hostAddress(t, node, "192.0.2.1/32")
		l, err := pod.Listen("tcp4", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		at, err := netip.ParseAddrPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		p := wanted(t, "c", "10.0.0.21", 2)
		do(t, node, func() error {
			ns, err := apply.OpenNetns(pod.Path)
			if err != nil {
				return err
			}
			defer ns.Close()
			s, err := apply.Begin(ns, apply.Options{})
			if err != nil {
				return err
			}
			defer s.Close()
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := s.Network(p); err != nil {
				return err
			}
			err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: [4]byte{10, 0, 0, 21}})
			if err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			host, err := netlink.LinkByName(p.Interfaces[0].Pair.Host.Name)
			if err == nil && host.Attrs().Statistics.TxDropped > 0 {
				t.Errorf("%d packets dropped", host.Attrs().Statistics.TxDropped)
			}
			return err
		})
	}
}
