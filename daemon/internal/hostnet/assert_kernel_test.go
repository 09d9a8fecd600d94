package hostnet

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
	"cnictl/testenv"
)

// livingPods returns pods to compare with [Host.View].
func livingPods(count int) (out []rules.WorkloadPod) {
	for i := range count {
		out = append(out, rules.WorkloadPod{
			Address: netip.AddrFrom4([4]byte{10, 0, byte(1 + i>>8), byte(i)}), Owner: fmt.Sprint("sandbox-", i), Table: []int{254, 2}[i%2],
			Hash: netnames.Hash("default", fmt.Sprint("p-", i), 0),
		})
	}
	return out
}

// make creates the pods' state on the host.
func (n *bed) make(pods []rules.WorkloadPod) {
	n.t.Helper()
	var b strings.Builder
	for i, p := range pods {
		link := netnames.DefaultVethPrefix + p.Hash
		fmt.Fprintf(&b, "link add %s type veth peer name far%d\nlink set %s up\nroute add %s dev %s scope link\nrule add priority 512 to %s lookup main\n", link, i, link, p.Address, link, p.Address)
		if p.Table != netnames.MainTable {
			fmt.Fprintf(&b, "rule add priority 1536 from %s lookup %d\n", p.Address, p.Table)
		}
	}
	n.sh("ip -batch - <<'EOF'\n" + b.String() + "EOF")
}

// diff compares once.
func (n *bed) diff(w *rules.Baseline, pods []rules.WorkloadPod) (out []rules.Repair) {
	n.t.Helper()
	n.do(func() error {
		v, err := n.host.View(n.t.Context(), false)
		if err == nil {
			out = w.Diff(v.State, pods, func(int32) (netstate.MAC, bool) { return netstate.MAC{}, false })
		}
		return err
	})
	return out
}

// podState lists the state that a wipe removes, sorted.
func (n *bed) podState() string {
	// The kernel raises carriers with a delay.
	lines := strings.Split(n.sh("{ ip rule; ip route; ip -o link | cut -d' ' -f2- | sed 's/ state [A-Z]*//; s/qdisc [a-z]*//; s/,LOWER_UP//; s/NO-CARRIER,//'; } | sed 's/ linkdown//'"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestRepair(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	pods := livingPods(4)
	n.make(pods)
	n.sh("for i in 0 1 2 3; do ip link set far$i up; done; ip rule add priority 700 from 10.9.9.9 lookup 9") // someone else's rule
	var w rules.Baseline
	if got := n.diff(&w, pods); len(got) > 0 {
		t.Fatalf("pods that lack nothing: %v", got)
	}
	first := netnames.DefaultVethPrefix + pods[0].Hash
	for what, wipe := range map[string]string{
		"rules":             "ip rule flush; ip rule add from all lookup main priority 32766; ip rule add from all lookup default priority 32767; ip rule add priority 700 from 10.9.9.9 lookup 9",
		"routes":            "ip route del 10.0.1.0; ip route del 10.0.1.1",
		"a link":            "ip link set " + first + " down",
		"another's rule":    "ip rule del priority 1536 from 10.0.1.1; ip rule add priority 1536 from 10.0.1.1 lookup 77",
		"a route elsewhere": "ip route replace 10.0.1.0 dev " + netnames.DefaultVethPrefix + pods[1].Hash + " scope link",
		"a MAC address":     "ip link set " + first + " address 02:00:00:00:be:ef",
	} {
		before := n.podState()
		n.sh(wipe)
		if n.podState() == before {
			t.Fatalf("%s: nothing was taken", what)
		}
		for round := 0; ; round++ {
			got := n.diff(&w, pods)
			if len(got) == 0 {
				break
			}
			if round == 4 {
				t.Fatalf("%s: still %v", what, got)
			}
			n.do(func() error {
				done, err := n.host.Repair(t.Context(), got)
				if len(done) != len(got) {
					t.Errorf("%s: did %v of %v", what, done, got)
				}
				return err
			})
		}
		if d := cmp.Diff(before, n.podState()); d != "" {
			t.Errorf("%s (-before +after):\n%s", what, d)
		}
	}
	// The state of a pod that has ended is removed, and nothing else.
	n.sh("ip rule del priority 512 to 10.0.1.3; ip route del 10.0.1.3")
	without := n.podState()
	got := n.diff(&w, pods)
	n.do(func() error { _, err := n.host.Repair(t.Context(), got); return err })
	n.do(func() error { return n.host.TakeBack(t.Context(), got) })
	if d := cmp.Diff(without, n.podState()); d != "" || len(got) != 2 {
		t.Errorf("taken back %v (-want +have):\n%s", got, d)
	}
}

func TestIdleDevices(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	hash := netnames.Hash("default", "p", 0)
	// Stand-ins: a view identifies links by name.
	n.sh(`for v in 3 4 5 6; do ip link add vlan.eth.$v type veth peer name t$v; ip link set vlan.eth.$v up; done
ip link add vlan` + hash + ` type veth peer name far; ip link set vlan` + hash + ` up
ip route add 10.0.1.3 dev vlan` + hash + ` table 103
ip rule add priority 10 iif vlan` + hash + ` lookup 104
ip route add 10.0.1.5 dev vlan` + hash + `; ip rule add priority 1536 from 10.0.1.5 lookup 105
ip rule add priority 1536 from 10.0.1.6 lookup 106; ip rule add priority 10 iif vlan.eth.6 lookup 106`)
	idle := func() (out map[int]bool) {
		n.do(func() error {
			v, err := n.host.View(t.Context(), false)
			out = v.IdleDevices()
			return err
		})
		return out
	}
	if d := cmp.Diff(map[int]bool{6: true}, idle()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	view := func() (v *View) {
		n.do(func() (err error) { v, err = n.host.View(t.Context(), false); return err })
		return v
	}
	// The VLAN ID has another device by now, with the same rules.
	old := view()
	n.sh("ip link del vlan.eth.6; ip link add vlan.eth.6 type veth peer name t6; ip link set vlan.eth.6 up")
	before := n.sh("ip rule; ip -o link")
	n.do(func() error { return n.host.DropDevice(t.Context(), old, 6) })
	if d := cmp.Diff(before, n.sh("ip rule; ip -o link")); d != "" {
		t.Errorf("by an old view (-before +after):\n%s", d)
	}
	current := view()
	n.do(func() error { return n.host.DropDevice(t.Context(), current, 6) })
	if got := n.sh("ip rule; ip -o link"); strings.Contains(got, "lookup 106") || strings.Contains(got, "vlan.eth.6") || !strings.Contains(got, "lookup 105") {
		t.Errorf("after the removal:\n%s", got)
	}
	if got := idle(); len(got) > 0 {
		t.Errorf("idle: %v", got)
	}
}

// TestLosses: what a network daemon removes from an ENI and from the node is named.
func TestLosses(t *testing.T) {
	backends(t, func(t *testing.T, n *bed) {
		n.sh("ip link add eth1 address 02:fa:4e:00:00:02 type veth peer name eth1far; ip link set eth1far up")
		eni := rules.ENIInput{MAC: "02:fa:4e:00:00:02", Device: 1, PrimaryIP: netip.MustParseAddr("10.0.0.20"), Subnet: netip.MustParsePrefix("10.0.0.0/18"), MTU: 9001}
		n.do(func() error { return n.host.SetupENI(t.Context(), eni) })
		n.setup()
		losses := func() (out []string) {
			n.do(func() error {
				v, err := n.host.View(t.Context(), false)
				if err != nil {
					return err
				}
				for _, l := range append(v.LostOfENI(eni), n.host.LostOfNode(v, input())...) {
					if l.Text == "" {
						t.Errorf("%s says nothing", l.Object)
					}
					if !slices.Contains(out, l.Object) {
						out = append(out, l.Object)
					}
				}
				return nil
			})
			return out
		}
		if got := losses(); len(got) > 0 {
			t.Fatalf("a node that lacks nothing: %v", got)
		}
		for _, row := range []struct {
			wipe string
			want []string
		}{
			{"ip rule del priority 32765", []string{ObjectENIRule}},
			{"ip route del default table 2", []string{ObjectENIRoute}},
			{"ip addr flush dev eth1", []string{ObjectENIAddress, ObjectENIRoute}},
			{"ip addr add 10.0.9.9/18 dev eth1", []string{ObjectENIAddress}},
			{"ip link set eth1 mtu 1500", []string{ObjectENILink}},
			{"ip link set eth1 down", []string{ObjectENILink, ObjectENIRoute}},
			{"ip link set eth0 mtu 1500", []string{ObjectPrimaryLink}},
			{"ip rule del priority 1024", []string{ObjectNodeRule}},
			{"echo 1 > /proc/sys/net/ipv4/conf/eth0/rp_filter", []string{ObjectSysctl}},
		} {
			n.sh(row.wipe)
			if d := cmp.Diff(row.want, losses()); d != "" {
				t.Errorf("%s (-want +got):\n%s", row.wipe, d)
			}
			n.do(func() error { return n.host.SetupENI(t.Context(), eni) })
			n.setup()
			if got := losses(); len(got) > 0 {
				t.Errorf("%s: not back: %v", row.wipe, got)
			}
		}
	})
}

// TestReadOnlySysctls: rp_filter is set even if /proc/sys is not writable; what cannot be
// set is logged once, and is no loss from then on.
func TestReadOnlySysctls(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	var log strings.Builder
	n.host.opts.Log, n.host.opts.ProcSys = slog.New(slog.NewTextHandler(&log, nil)), t.TempDir()
	ipv6Egress := func(in *rules.NodeInput) { in.V6Egress = true }
	for _, path := range []string{"net/ipv4/conf/eth0/rp_filter", "net/ipv6/conf/eth0/accept_ra", "net/ipv6/conf/all/forwarding"} {
		path = filepath.Join(n.host.opts.ProcSys, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/proc/sys/kernel/osrelease", path); err != nil { // not writable
			t.Fatal(err)
		}
	}
	n.sh("echo 1 > /proc/sys/net/ipv4/conf/eth0/rp_filter")
	lost := func(of func(*View, rules.NodeInput) []Loss) (out []Loss) {
		n.do(func() error {
			v, err := n.host.View(t.Context(), false)
			out = of(v, input(ipv6Egress))
			return err
		})
		return slices.DeleteFunc(out, func(l Loss) bool { return l.Object != ObjectSysctl || strings.Contains(l.Text, "rp_filter") })
	}
	if got := lost(n.host.LostOfNode); len(got) != 2 {
		t.Errorf("lost at first: %v", got)
	}
	for range 2 {
		n.setup(ipv6Egress)
		if got := lost(n.host.LostOfNode); len(got) > 0 {
			t.Errorf("lost though it cannot be set: %v", got)
		}
		if got := lost(n.host.StillLostOfNode); len(got) != 2 {
			t.Errorf("still lost: %v", got)
		}
	}
	if got := n.sh("cat /proc/sys/net/ipv4/conf/eth0/rp_filter"); got != "2\n" {
		t.Errorf("rp_filter is %q", got)
	}
	if text := log.String(); strings.Count(text, "cannot be set") != 2 || strings.Contains(text, "cannot be set\" sysctl=net.ipv4") {
		t.Errorf("not one warning for each of the two:\n%s", text)
	}
}

// TestNoIPv6Address: an IPv4 pod's device has no IPv6 address.
func TestNoIPv6Address(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.sh("ip link add with type veth peer name far1; ip link add without type veth peer name far2; ip link set far1 up; ip link set far2 up")
	n.do(func() error { return with(func(c *rtnl.Conn) error { return noIPv6Address(c, "without") }) })
	n.sh("ip link set without up; ip link set with up") // in this order: when the second has its address, the first could have one
	// Otherwise the test would show nothing:
	testenv.Eventually(t, "the kernel makes an address of IPv6", func() bool {
		return strings.Contains(n.sh("ip -6 addr show dev with"), "inet6")
	})
	if got := n.sh("ip -6 addr show dev without"); strings.Contains(got, "inet6") {
		t.Errorf("it has one:\n%s", got)
	}
}

// TestMonitor: removals cause notices, kube-proxy's chains do not.
func TestMonitor(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.setup()
	n.make(livingPods(1))
	m := NewMonitor(primaryMAC)
	ctx, stop := context.WithCancel(t.Context())
	notices := make(chan Notice, 1024)
	ended := make(chan error, 1)
	n.do(func() error {
		v, err := n.host.View(ctx, false)
		if err != nil {
			return err
		}
		m.Sync(v)
		routes, filters, err := openWatches()
		go func() {
			ended <- m.follow(ctx, routes, filters, func(list ...Notice) {
				for _, n := range list {
					notices <- n
				}
			})
		}()
		return err
	})
	await := func(what string, want NoticeKind) {
		t.Helper()
		for testenv.Receive(t, "a notice of "+what, notices).Kind != want {
		}
	}
	drain := func() {
		for len(notices) > 0 {
			<-notices
		}
	}
	for _, row := range []struct {
		what, script string
		want         NoticeKind
	}{
		{"a pod's rule", "ip rule del priority 512", ChangedPod},
		{"the mark's rule", "ip rule del priority 1024", ChangedNode},
		{"the SNAT chain", "iptables-nft -t nat -F AWS-SNAT-CHAIN-0", ChangedNode},
		{"the native table", "nft delete table ip aws-cni", ChangedNode},
		{"rp_filter", "echo 1 > /proc/sys/net/ipv4/conf/eth0/rp_filter", ChangedNode},
		{"the link", "ip link set eth0 mtu 1400", ChangedLinks},
	} {
		drain()
		n.sh(row.script)
		await(row.what, row.want)
	}
	n.sh("iptables-nft -t nat -N KUBE-SVC-1; iptables-nft -t nat -A KUBE-SVC-1 -j RETURN; iptables-nft -t nat -F KUBE-SVC-1; iptables-nft -t nat -X KUBE-SVC-1; ip rule add priority 512 to 10.0.1.0 lookup main; ip rule del priority 512")
	for first := true; ; first = false {
		got := <-notices
		if got.Kind == ChangedPod {
			break
		}
		if got.Kind == ChangedNode && first {
			t.Errorf("notices of kube-proxy's chains: %+v", got)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAssert_Idle: on a node with 500 complete pods a look finds nothing.
func TestAssert_Idle(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	pods := livingPods(500)
	n.make(pods)
	var w rules.Baseline
	before := n.podState()
	for range 3 {
		if got := n.diff(&w, pods); len(got) > 0 {
			t.Fatalf("%d repairs, the first: %v", len(got), got[0])
		}
	}
	for _, p := range pods {
		if !w.Has(p.Address) {
			t.Fatalf("%v is not whole", p.Address)
		}
	}
	if before != n.podState() {
		t.Error("looks changed the node")
	}
}

// BenchmarkAssert_Idle looks at a node with 500 complete pods.
func BenchmarkAssert_Idle(b *testing.B) {
	n := newBed(b, "iptables-nft")
	pods := livingPods(500)
	n.make(pods)
	var w rules.Baseline
	n.do(func() error {
		for b.Loop() {
			v, err := n.host.View(b.Context(), false)
			if err != nil {
				return err
			}
			if got := w.Diff(v.State, pods, func(int32) (netstate.MAC, bool) { return netstate.MAC{}, false }); len(got) > 0 {
				b.Fatal(got[0])
			}
		}
		return nil
	})
}
