package hostnet

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
	"cnictl/testenv"
)

func v6Egress(in *rules.NodeInput) { in.V6Egress = true }

const guard6 = `-A FORWARD -d fd00::ac:0/118 -m conntrack --ctstate NEW -m comment --comment "Block Node Local Pod access via IPv6" -j REJECT --reject-with icmp6-port-unreachable`

// saved6 is what ip6tables-save prints, without its comment lines.
func (n *bed) saved6() string {
	n.t.Helper()
	return withoutComments(n.sh(ip6tables(n.tool) + "-save"))
}

// programsRun returns the programs of the last pass.
func (n *bed) programsRun() (out []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.runs {
		out = append(out, r.Program)
	}
	return out
}

// restarted is the same node after the daemon's restart, with another iptables program.
func (n *bed) restarted(tool string) *bed {
	n.t.Helper()
	again := &bed{t: n.t, ns: n.ns, tool: tool}
	opts := n.host.opts
	opts.IPTables = tool
	opts.Observe = func(r Run) {
		again.mu.Lock()
		defer again.mu.Unlock()
		again.runs = append(again.runs, r)
	}
	var err error
	if again.host, err = New(n.t.Context(), opts); err != nil {
		n.t.Fatal(err)
	}
	return again
}

// The guard for IPv6 egress follows its setting, across restarts too, and stays while a pod
// with such an address lives.
func TestSetupNode_IPv6Guard(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		const other = `-A FORWARD -d fd00:9::/64 -m comment --comment mine -j ACCEPT`
		n.sh(ip6tables(n.tool) + "-restore <<'EOF'\n*filter\n" + other + "\nCOMMIT\nEOF")
		n.setup()
		if wrote := n.setup(v6Egress); !cmp.Equal(wrote, []string{ip6tables(n.tool) + "-restore"}) {
			t.Errorf("wrote with %q", wrote)
		}
		if got := n.saved6(); !strings.Contains(got, guard6+"\n"+other+"\n") {
			t.Errorf("ip6tables:\n%s", got)
		}
		if v := n.sh("cat /proc/sys/net/ipv6/conf/all/forwarding /proc/sys/net/ipv6/conf/eth0/accept_ra"); v != "1\n2\n" {
			t.Errorf("forwarding and accept_ra: %q", v)
		}
		n.quiet(v6Egress)
		n = n.restarted(n.tool)
		n.quiet(v6Egress)

		n.sh("ip link add veth0a1b2c3d type veth peer name far; ip link set veth0a1b2c3d up; ip -6 route add fd00::ac:7 dev veth0a1b2c3d")
		n = n.restarted(n.tool)
		n.quiet()
		if got := n.saved6(); !strings.Contains(got, guard6) {
			t.Errorf("with a living pod:\n%s", got)
		}
		n.sh("ip link del veth0a1b2c3d")
		n.setup()
		if got := n.saved6(); strings.Contains(got, guard6) || !strings.Contains(got, other+"\n") {
			t.Errorf("without the setting:\n%s", got)
		}
		n.quiet()
		n.setup(v6Egress)
		n = n.restarted(n.tool)
		n.setup(ipv6) // the cluster's family changed
		if got := n.saved6(); strings.Contains(got, guard6) {
			t.Errorf("on an IPv6 node:\n%s", got)
		}
	})
}

// A node that never had IPv6 egress runs ip6tables once at most, and no program of a legacy
// backend without tables.
func TestSetupNode_ProgramsOfAPass(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.setup()
	want := []string{"ip6tables-nft-save", "iptables-nft-restore", "iptables-nft-save", "nft", "nft"}
	if got := n.programsRun(); !cmp.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("the first pass ran %q", got)
	}
	n.setup()
	want = []string{"iptables-nft-save", "nft"}
	if got := n.programsRun(); !cmp.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("the second pass ran %q", got)
	}
}

// A missing ip6tables is reported only if a setting needs it.
func TestSetupNode_WithoutIP6Tables(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.host.inUse().six = newBackend("no-such-ip6tables", false)
	n.host.inUse().others = []*backend{newBackend("no-such-iptables", true)}
	n.setup()
	n.quiet()
	err := n.ns.Do(func() error { return n.host.SetupNode(t.Context(), input(v6Egress)) })
	if err == nil || !strings.HasPrefix(err.Error(), "failed to block node local v6 access: find no-such-ip6tables-save") {
		t.Errorf("%v", err)
	}
}

// A kernel that cannot list a rule set of nf_tables is asked once.
func TestSetupNode_KernelWithoutTheOtherBackend(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-legacy")
	refusing := t.TempDir() + "/refuses"
	if err := os.WriteFile(refusing, []byte("#!/bin/sh\necho 'Protocol not supported' >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	n.host.inUse().others = []*backend{{programs: pair{name: "iptables-nft", save: refusing, restore: refusing}}}
	n.setup()
	if got := n.programsRun(); !slices.Contains(got, "refuses") {
		t.Errorf("the first pass ran %q", got)
	}
	n.setup()
	if got := n.programsRun(); slices.Contains(got, "refuses") {
		t.Errorf("the second pass ran %q", got)
	}
	n.same()
}

// Rules that the daemon made in the other backend are removed, others' rules there stay,
// and that backend is left alone from then on.
func TestSetupNode_RulesInTheOtherBackend(t *testing.T) {
	t.Parallel()
	for from, to := range map[string]string{"iptables-nft": "iptables-legacy", "iptables-legacy": "iptables-nft"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			n := newBed(t, from)
			const others = `*filter
:FORWARD DROP [0:0]
-A FORWARD -d 10.9.9.9/32 -j ACCEPT
COMMIT
*mangle
-A PREROUTING -m comment --comment "cali:x" -j MARK --set-xmark 0x1000000/0x1000000
COMMIT
*nat
:KUBE-SERVICES - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
COMMIT
`
			const others6 = "*filter\n-A FORWARD -d fd00:9::/64 -j ACCEPT\nCOMMIT\n"
			n.load(others)
			n.sh(ip6tables(from) + "-restore <<'EOF'\n" + others6 + "EOF")
			before, before6 := n.saved(), n.saved6()
			for _, setting := range []func(*rules.NodeInput){v6Egress, ipv6} {
				n.setup(setting)
			}
			n.setup(v6Egress)
			now := n.restarted(to)
			now.setup()
			now.same()
			if d := cmp.Diff(uncounted(before), uncounted(n.saved())); d != "" {
				t.Errorf("%s (-before the daemon +after):\n%s", from, d)
			}
			if d := cmp.Diff(uncounted(before6), uncounted(n.saved6())); d != "" {
				t.Errorf("%s (-before the daemon +after):\n%s", ip6tables(from), d)
			}
			if got := now.saved6(); strings.Contains(got, guard6) {
				t.Errorf("%s:\n%s", ip6tables(to), got)
			}
			now.quiet()
			if got := now.programsRun(); slices.Contains(got, from+"-save") {
				t.Errorf("what is clean is read again: %q", got)
			}
		})
	}
}

var policyCounters = regexp.MustCompile(`\[\d+:\d+\]`)

// uncounted resets the policy counters, which the node's own traffic changes.
func uncounted(saved string) string { return policyCounters.ReplaceAllString(saved, "[0:0]") }

// If the random-port setting and the primary link's name change, the old rules are replaced.
func TestSetupNode_PortsAndLinkNameChange(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		ports := func(kind string) func(*rules.NodeInput) {
			return func(in *rules.NodeInput) { in.RandomizeSNAT = kind }
		}
		for _, kind := range []string{rules.SNATHashRandom, rules.SNATNone, rules.SNATPRNG} {
			n.setup(ports(kind))
			n.same(ports(kind))
			n.quiet(ports(kind))
		}
		n.sh("ip link set eth0 down; ip link set eth0 name ens5; ip link set ens5 up")
		n.setup()
		if got := n.saved(); strings.Contains(got, "-i eth0") || strings.Count(got, "-i ens5 ") != 1 {
			t.Errorf("rules:\n%s", got)
		}
		n.quiet()
	})
}

// Our jump comes after kube-proxy's, even if kube-proxy starts later: the CIDRs are compared
// with the pod behind a Service.
func TestSetupNode_JumpBehindKubeProxys(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-legacy")
	n.setup()
	n.load("*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\nCOMMIT\n*filter\nCOMMIT")
	n.sh(n.tool + "-restore --noflush <<'EOF'\n*nat\nCOMMIT\nEOF")
	n.setup()
	pre := func() string { return n.sh(n.tool + " -t nat -S PREROUTING") }
	const want = `-P PREROUTING ACCEPT
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -i eni+ -m comment --comment "AWS, outbound connections" -j AWS-CONNMARK-CHAIN-0
-A PREROUTING -m comment --comment "AWS, CONNMARK" -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80
`
	if d := cmp.Diff(want, pre()); d != "" {
		t.Errorf("(-want +kernel):\n%s", d)
	}
	n.sh(n.tool + ` -t nat -D PREROUTING 1; ` + n.tool + ` -t nat -A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES`)
	if wrote := n.setup(); !cmp.Equal(wrote, []string{"iptables-legacy-restore"}) {
		t.Errorf("wrote with %q", wrote)
	}
	if d := cmp.Diff(want, pre()); d != "" {
		t.Errorf("after kube-proxy came later (-want +kernel):\n%s", d)
	}
	n.quiet()
}

// If someone holds the iptables lock for long, a pass with nothing to write is not blocked,
// and one with something to write only until the lock is free.
func TestSetupNode_LockHeldForLong(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-legacy")
	n.setup()
	lock, err := os.OpenFile("/run/xtables.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	n.quietWithLock()
	done := make(chan error, 1)
	go func() {
		done <- n.ns.Do(func() error { return n.host.SetupNode(t.Context(), input(moreCIDRs)) })
	}()
	testenv.Eventually(t, "the pass waits for the lock", func() bool {
		locks, err := os.ReadFile("/proc/locks")
		return err == nil && strings.Contains(string(locks), "-> FLOCK")
	})
	select {
	case err := <-done:
		t.Errorf("the pass did not wait: %v", err)
	default:
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	n.same(moreCIDRs)
}

// quietWithLock is quiet without the test's own programs that would need the lock.
func (n *bed) quietWithLock() {
	n.t.Helper()
	if wrote := n.setup(); wrote != nil {
		n.t.Errorf("wrote with %q", wrote)
	}
}

// Leftovers in a legacy backend whose lock is held do not fail a pass, and a later pass
// removes them.
func TestSetupNode_LeftoversUnderALock(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-legacy")
	n.setup()
	now := n.restarted("iptables-nft")
	lock, err := os.OpenFile("/run/xtables.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	now.host.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	now.setup()
	now.setup()
	if got := strings.Count(log.String(), "cannot remove rules that an earlier run left"); got != 1 {
		t.Errorf("logged %d times:\n%s", got, log.String())
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	now.setup()
	if got := n.saved(); strings.Contains(got, "AWS") {
		t.Errorf("left:\n%s", got)
	}
	now.same()
	now.quiet()
}

func TestNodeDiffers(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		differs := func(change ...func(*rules.NodeInput)) (parts []string) {
			t.Helper()
			before := n.everything()
			n.do(func() (err error) {
				parts, err = n.host.NodeDiffers(t.Context(), input(change...))
				return err
			})
			if d := cmp.Diff(before, n.everything()); d != "" {
				t.Errorf("it changed the node (-before +after):\n%s", d)
			}
			return parts
		}
		if got := differs(); !cmp.Equal(got, []string{PartLink, PartRules, PartFilters}) {
			t.Errorf("a fresh node: %q", got)
		}
		n.setup()
		if got := differs(); got != nil {
			t.Errorf("a node as wanted: %q", got)
		}
		for _, row := range []struct {
			damage string
			want   string
		}{
			{"ip link set eth0 mtu 1500", PartLink},
			{"ip rule del priority 1024", PartRules},
			{n.tool + " -t mangle -F PREROUTING", PartFilters},
		} {
			n.sh(row.damage)
			if got := differs(); !cmp.Equal(got, []string{row.want}) {
				t.Errorf("after %q: %q", row.damage, got)
			}
			n.setup()
		}
		if got := differs(v6Egress); !cmp.Equal(got, []string{PartFilters}) {
			t.Errorf("with IPv6 egress: %q", got)
		}
	})
}

// The programs of both families and backends are derived from the name of the one in use.
func TestFindBackends(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		iptables string
		backend  rules.Backend
		want     []string
	}{
		{"iptables", rules.NFTables, []string{"ip6tables", "iptables-legacy", "ip6tables-legacy"}},
		{"iptables", rules.IPTables, []string{"ip6tables", "iptables-nft", "ip6tables-nft"}},
		{"/x/iptables-nft", rules.NFTables, []string{"/x/ip6tables-nft", "/x/iptables-legacy", "/x/ip6tables-legacy"}},
	} {
		h := &Host{opts: Options{IPTables: row.iptables}, plain: row.backend}
		var got []string
		for s := range h.choose(row.backend, "").backends(iptables.Ruleset{}) {
			got = append(got, s.programs.name)
		}
		if !cmp.Equal(got, row.want) {
			t.Errorf("%s, %s: %q", row.iptables, row.backend, got)
		}
	}
}
