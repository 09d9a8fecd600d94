package hostnet

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
	"cnictl/daemon/netstate"
	"cnictl/testenv"
)

func externalSNAT(in *rules.NodeInput) { in.ExternalSNAT = true }
func noNodePort(in *rules.NodeInput)   { in.NodePortSupport = false }
func moreCIDRs(in *rules.NodeInput) {
	in.VPCCIDRs = append(in.VPCCIDRs, netip.MustParsePrefix("100.64.0.0/16"))
	in.ExcludeSNATCIDRs = []netip.Prefix{netip.MustParsePrefix("192.168.7.9/32")}
}
func strict(in *rules.NodeInput) { in.StrictPodENI = true }
func ipv6(in *rules.NodeInput) {
	in.IPv6, in.PrimaryIP, in.VPCCIDRs, in.VethPrefix = true, netip.Addr{}, nil, ""
}
func otherMark(in *rules.NodeInput)   { in.ConnMark = 0x30 }
func otherPrefix(in *rules.NodeInput) { in.VethPrefix = "pod" }
func services(in *rules.NodeInput) {
	in.ExternalServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("172.20.0.0/16")}
}

func TestSetupNode_SameAsRecorded(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	if n.host.Backend() != "nftables" {
		t.Fatalf("backend %s", n.host.Backend())
	}
	if wrote := n.setup(); !cmp.Equal(wrote, []string{"nft", "iptables-nft-restore"}) { // once each
		t.Errorf("wrote with %q", wrote)
	}
	if d := cmp.Diff(withoutComments(readFile(t, "recorded.iptables-save.txt")), n.saved()); d != "" {
		t.Errorf("iptables-save (-recorded +ours):\n%s", d)
	}
	table := n.sh("nft list table ip aws-cni")
	if d := cmp.Diff(n.want().NFT.String(), table); d != "" {
		t.Errorf("nft list (-wanted +kernel):\n%s", d)
	}
	recorded, err := rules.ParseNFT(readFile(t, "recorded.nft-ruleset.txt"))
	if err != nil {
		t.Fatal(err)
	}
	const theirs = "\t\tcounter packets 0 bytes 0 meta mark set ct mark & 0x00000080\n"
	got := strings.Replace(table,
		"\t\tct mark & 0x00000080 == 0x00000000 meta mark set meta mark & 0xffffff7f\n"+
			"\t\tct mark & 0x00000080 == 0x00000080 meta mark set meta mark | 0x00000080\n", theirs, 1)
	if d := cmp.Diff(recorded.String(), got); d != "" {
		t.Errorf("native table (-recorded +ours, restore rule exchanged):\n%s", d)
	}
	if d := cmp.Diff("0:\tfrom all lookup local\n1024:\tfrom all fwmark 0x80/0x80 lookup main\n32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n", n.sh("ip rule")); d != "" {
		t.Errorf("ip rule (-recorded +ours):\n%s", d)
	}
	if link := n.sh("ip link show eth0"); !strings.Contains(link, " mtu 9001 ") {
		t.Errorf("MTU not set: %s", link)
	}
	if v := n.sh("cat /proc/sys/net/ipv4/conf/eth0/rp_filter"); v != "2\n" {
		t.Errorf("rp_filter = %s", v)
	}
	n.quiet()
}

// Every combination of settings can be reached from every other, and is then stable.
func TestSetupNode_SettingsChange(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		type change = []func(*rules.NodeInput)
		for _, c := range []change{
			nil, {externalSNAT}, nil, {externalSNAT, noNodePort}, {noNodePort}, {moreCIDRs}, {otherMark},
			{otherPrefix, services}, {moreCIDRs, services}, {externalSNAT, noNodePort, otherMark}, nil,
			{strict}, {strict, externalSNAT}, nil, {ipv6}, {ipv6, strict}, {ipv6, noNodePort, externalSNAT}, {strict, moreCIDRs}, {ipv6, otherMark}, nil,
		} {
			n.setup(c...)
			n.same(c...)
			n.quiet(c...)
		}
	})
}

// same compares the kernel with the wanted state, ignoring what is not ours.
func (n *bed) same(change ...func(*rules.NodeInput)) {
	n.t.Helper()
	want := n.want(change...)
	got, err := iptables.ParseSave(n.saved())
	if err != nil {
		n.t.Fatal(err)
	}
	for _, t := range want.Ruleset.Tables {
		table, _ := got.Table(t.Name)
		for _, c := range t.Chains {
			chain, ok := table.Chain(c.Name)
			// A table that never had a rule of ours may not exist.
			if !ok && c.Policy == "-" || ok && !cmp.Equal(chain.Rules, c.Rules) && !sameSet(chain.Rules, c.Rules) {
				n.t.Errorf("%s/%s (-wanted +kernel):\n%s", t.Name, c.Name, cmp.Diff(c.Rules, chain.Rules))
			}
		}
	}
	nft, err := try(n.ns, "nft list table ip aws-cni")
	switch {
	case want.NFT == nil && err == nil:
		n.t.Errorf("native table is left:\n%s", nft)
	case want.NFT != nil && nft != want.NFT.String():
		n.t.Errorf("native table (-wanted +kernel):\n%s", cmp.Diff(want.NFT.String(), nft))
	}
	for six, command := range map[bool]string{false: "ip rule", true: "ip -6 rule"} {
		if d := cmp.Diff(wantedRules(want.IPRules, six), n.nodeRules(command)); d != "" {
			n.t.Errorf("%s (-wanted +kernel):\n%s", command, d)
		}
	}
}

// nodeRules returns the lines of a list of policy rules that may be the node's own.
func (n *bed) nodeRules(command string) (lines []string) {
	for line := range strings.Lines(n.sh(command)) {
		priority, _, _ := strings.Cut(line, ":")
		if slices.Contains([]string{"0", "20", "1024", "1535"}, priority) {
			lines = append(lines, strings.Replace(strings.TrimSuffix(line, "\n"), "\t", " ", 1))
		}
	}
	return lines
}

// wantedRules returns the expected lines: the kernel's rule of the local table exists unless
// strict mode moved it.
func wantedRules(list []netstate.Rule, six bool) (lines []string) {
	strict := slices.ContainsFunc(list, func(r netstate.Rule) bool { return r.Priority == 20 && r.IPv6 == six })
	if !strict {
		lines = append(lines, "0: from all lookup local")
	}
	for _, r := range list {
		if r.IPv6 == six {
			lines = append(lines, r.String())
		}
	}
	return lines
}

// sameSet compares the rules of a kernel chain in any order.
func sameSet(a, b []string) bool {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, c := range count {
		if c != 0 {
			return false
		}
	}
	return true
}

const v122 = `*mangle
:PREROUTING ACCEPT [0:0]
-A PREROUTING -m comment --comment "cali:x" -j MARK --set-xmark 0x1000000/0x1000000
-A PREROUTING -i eth0 -m comment --comment "AWS, primary ENI" -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-mark 0x80/0x80
-A PREROUTING -i eni+ -m comment --comment "AWS, primary ENI" -j CONNMARK --restore-mark --mask 0x80
-A PREROUTING -i vlan+ -m comment --comment "AWS, primary ENI" -j CONNMARK --restore-mark --mask 0x80
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:AWS-SNAT-CHAIN-0 - [0:0]
:AWS-SNAT-CHAIN-1 - [0:0]
:AWS-CONNMARK-CHAIN-0 - [0:0]
:AWS-CONNMARK-CHAIN-1 - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -i eni+ -m comment --comment "AWS, outbound connections" -m state --state NEW -j AWS-CONNMARK-CHAIN-0
-A PREROUTING -i eni+ -m comment --comment "AWS, outbound connections" -j AWS-CONNMARK-CHAIN-0
-A PREROUTING -m comment --comment "AWS, CONNMARK" -j CONNMARK --restore-mark --mask 0x80
-A POSTROUTING -s 10.9.9.0/24 -m comment --comment "mine \"quoted\"" -j ACCEPT
-A POSTROUTING -m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-0
-A AWS-SNAT-CHAIN-0 -d 10.0.0.0/16 -m comment --comment "AWS SNAT CHAIN" -j RETURN
-A AWS-SNAT-CHAIN-0 ! -o vlan+ -m comment --comment "AWS, SNAT" -m addrtype ! --dst-type LOCAL -j SNAT --to-source 10.0.0.10 --random-fully
-A AWS-CONNMARK-CHAIN-0 -d 10.0.0.0/16 -m comment --comment "AWS CONNMARK CHAIN, VPC CIDR" -j RETURN
-A AWS-CONNMARK-CHAIN-0 -m comment --comment "AWS, CONNMARK" -j CONNMARK --set-xmark 0x80/0x80
-A AWS-CONNMARK-CHAIN-1 -m comment --comment "AWS, CONNMARK" -j AWS-SNAT-CHAIN-1
COMMIT
`

func TestSetupNode_UpgradeFromV122(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		n.load(v122)
		n.setup()
		got := n.saved()
		for _, gone := range []string{"VPC CIDR", "--state", "CHAIN-1"} {
			if strings.Contains(got, gone) {
				t.Errorf("%q is left:\n%s", gone, got)
			}
		}
		for _, kept := range []string{
			`-A PREROUTING -m comment --comment "cali:x" -j MARK --set-xmark 0x1000000/0x1000000`,
			`-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES`,
			`-A POSTROUTING -s 10.9.9.0/24 -m comment --comment "mine \"quoted\"" -j ACCEPT`,
		} {
			if !strings.Contains(got, kept+"\n") {
				t.Errorf("rule of others is gone: %s\n%s", kept, got)
			}
		}
		if left := strings.Contains(got, "AWS-CONNMARK-CHAIN-0"); left == (n.tool == "iptables-nft") {
			t.Errorf("AWS-CONNMARK-CHAIN-0 there: %t\n%s", left, got)
		}
		n.quiet()
	})
}

// originalTable is the native table as upstream v1.23 leaves it.
func originalTable(t testing.TB) string {
	t.Helper()
	text := readFile(t, "recorded.nft-ruleset.txt")
	return text[strings.Index(text, "table ip aws-cni"):]
}

func TestSetupNode_UpgradeFromV123(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		n.load(withoutComments(readFile(t, "recorded.iptables-save.txt")))
		n.sh("nft -f - <<'EOF'\n" + originalTable(t) + "EOF")
		if !strings.Contains(n.sh("nft list table ip aws-cni"), "meta mark set ct mark & 0x00000080") {
			t.Fatal("upstream's restore rule was not loaded")
		}
		wrote := n.setup()
		if n.tool == "iptables-nft" {
			if !cmp.Equal(wrote, []string{"nft"}) {
				t.Errorf("wrote with %q, expected nothing but the restore rule to change", wrote)
			}
		}
		n.same()
		n.quiet()
	})
}

// An incomprehensible or altered native table is repaired.
func TestSetupNode_NativeTableRepaired(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"chain more":      "add chain ip aws-cni other",
		"set more":        "add set ip aws-cni s { type ipv4_addr; }",
		"rule first":      "insert rule ip aws-cni nat-prerouting accept",
		"rule more":       "insert rule ip aws-cni snat-mark accept",
		"empty":           "flush table ip aws-cni",
		"gone":            "delete table ip aws-cni",
		"other priority":  "delete table ip aws-cni; add table ip aws-cni; add chain ip aws-cni nat-prerouting { type nat hook prerouting priority -100; }",
		"other hook":      "delete table ip aws-cni; add table ip aws-cni; add chain ip aws-cni snat-mark { type nat hook output priority -90; }",
		"dormant":         "add table ip aws-cni { flags dormant; }",
		"not the default": "delete chain ip aws-cni nat-prerouting; add chain ip aws-cni nat-prerouting { type nat hook prerouting priority -90; policy drop; }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newBed(t, "iptables-nft")
			n.setup()
			n.sh("nft '" + damage + "'")
			if wrote := n.setup(); !cmp.Equal(wrote, []string{"nft"}) {
				t.Errorf("wrote with %q", wrote)
			}
			n.same()
			n.quiet()
		})
	}
}

func TestSetupNode_BackendChanges(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.setup()
	legacy := &bed{t: t, ns: n.ns, tool: "iptables-legacy"}
	var err error
	legacy.host, err = New(t.Context(), Options{Log: n.host.opts.Log, IPTables: "iptables-legacy"})
	if err != nil {
		t.Fatal(err)
	}
	legacy.setup()
	legacy.same()
	if _, err := try(n.ns, "nft list table ip aws-cni"); err == nil {
		t.Error("the native table is left")
	}
}

// A transaction that fails because the state changed after it was read is repeated with a
// new reading.
func TestSetupNode_RetriesOnConcurrentChange(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		n.setup(otherMark)
		meddled, refused := false, 0
		n.host.opts.Observe = func(r Run) {
			if strings.HasSuffix(r.Program, "-save") && !meddled {
				meddled = true
				shell(t, n.ns, n.tool+" -t mangle -F PREROUTING")
			}
			if strings.HasSuffix(r.Program, "-restore") && r.Err != nil {
				refused++
			}
		}
		n.setup()
		if refused != 1 {
			t.Errorf("%d transactions were refused, expected 1", refused)
		}
		n.same()
	})
}

// A pass waits for the iptables lock, but no longer than the context allows.
func TestSetupNode_WaitsForTheLockOfIPTables(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-legacy")
	lock, err := os.OpenFile("/run/xtables.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithDeadline(t.Context(), testenv.Soon())
	defer stop()
	if err := n.ns.Do(func() error { return n.host.SetupNode(ctx, input()) }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with the lock held: %v", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	n.setup()
	n.same()
}

func TestSetupNode_Errors(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	setup := func(change func(*rules.NodeInput)) string {
		t.Helper()
		err := n.ns.Do(func() error { return n.host.SetupNode(t.Context(), input(change)) })
		if err == nil {
			t.Fatal("no error")
		}
		return err.Error()
	}
	n.host.opts.PrimaryWait = time.Millisecond
	const mac = "02:00:00:00:00:99"
	want := "setupHostNetwork: failed to find the link primary ENI with MAC address " + mac + ": no interface found which uses mac address " + mac + " (attempt 5/5): context deadline exceeded"
	if got := setup(func(in *rules.NodeInput) { in.PrimaryMAC = mac }); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := setup(func(in *rules.NodeInput) { in.PrimaryMAC = "" }); got != "failed to SetupHostNetwork: no primary interface found" {
		t.Error(got)
	}
	n.host.opts.PrimaryWait = time.Minute
	if got := setup(func(in *rules.NodeInput) { in.VPCCIDRs = nil }); got != "host network setup: exemptCIDRs cannot be empty" {
		t.Error(got)
	}
	if got := setup(func(in *rules.NodeInput) { in.MTU = 3 }); !strings.HasPrefix(got, "setupHostNetwork: failed to set primary interface MTU to 3: set link mtu: ") {
		t.Error(got)
	}
}

// iptables can neither list nor change one of its tables that was filled with nft: the error
// says so.
func TestSetupNode_ForeignTable(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	n.sh(`nft 'add table ip nat; add set ip nat s { type ipv4_addr; flags timeout; }; add chain ip nat PREROUTING { type nat hook prerouting priority -100; }; add rule ip nat PREROUTING ip saddr @s numgen random mod 2 0 accept'`)
	err := n.ns.Do(func() error { return n.host.SetupNode(t.Context(), input()) })
	if err == nil || !strings.Contains(err.Error(), "table nat holds rules written by nft") {
		t.Errorf("%v\n%s", err, n.sh(n.tool+"-save"))
	}
}

// A rule that iptables-restore refuses is named as upstream does.
func TestRestoreText(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		script := `*nat
-D POSTROUTING -m comment --comment "AWS SNAT CHAIN" -j RETURN
COMMIT
`
		err := n.ns.Do(func() error { return n.host.run(t.Context(), n.host.restoreTransaction(script)) })
		const want = `host network setup: failed to delete nat/POSTROUTING rule first SNAT rules for non-VPC outbound traffic shouldExist false rule [-m comment --comment "AWS SNAT CHAIN" -j RETURN]: run `
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s...", err, want)
		}
	})
}

func TestNew_Errors(t *testing.T) {
	t.Parallel()
	log := newBed(t, "iptables-nft").host.opts.Log
	if _, err := New(t.Context(), Options{Log: log, IPTables: "no-such-iptables"}); err == nil || !strings.HasPrefix(err.Error(), "failed to detect iptables mode vpc-cni is using: ") {
		t.Errorf("%v", err)
	}
	if _, err := New(t.Context(), Options{Log: log, IPTables: "iptables-nft", NFT: "no-such-nft"}); err == nil || !strings.Contains(err.Error(), "no-such-nft") {
		t.Errorf("%v", err)
	}
	h, err := New(t.Context(), Options{Log: log, IPTables: "iptables-legacy", NFT: "no-such-nft"})
	if err != nil || h.Backend() != "iptables" {
		t.Errorf("%v, %v", h, err)
	}
	if _, err := New(t.Context(), Options{}); err == nil {
		t.Error("no logger, no error")
	}
}

func TestReadVersion(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text        string
		backend     rules.Backend
		randomFully bool
	}{
		{"iptables v1.8.9 (nf_tables)", rules.NFTables, true},
		{"iptables v1.8.9 (legacy)", rules.IPTables, true},
		{"iptables v1.6.1", rules.NFTables, false}, // upstream accepts it too
		{"iptables v1.6.2", rules.NFTables, true},
		{"iptables v1.10", rules.NFTables, true},
		{"iptables v2", rules.NFTables, true},
		{"", rules.NFTables, false},
	} {
		backend, fully := readVersion(row.text)
		if backend != row.backend || fully != row.randomFully {
			t.Errorf("%q: %s, %t", row.text, backend, fully)
		}
	}
}

// Unwritable kernel settings are reported once and do not stop a node.
func TestSetupNode_ReadOnlySysctl(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	var log strings.Builder
	n.host.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	n.host.opts.ProcSys = t.TempDir()
	n.setup()
	n.setup()
	if got := strings.Count(log.String(), "net.ipv4.conf.eth0.rp_filter = 2"); got != 1 {
		t.Errorf("logged %d times:\n%s", got, log.String())
	}
}
