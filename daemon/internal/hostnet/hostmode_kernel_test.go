package hostnet

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/hostnet/rules"
)

// withPlain makes a directory of programs like an image's, where plain iptables has a mode,
// and returns its path.
func withPlain(t *testing.T, mode string) string {
	t.Helper()
	dir := t.TempDir()
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, part := range []string{"", "-save", "-restore"} {
			for name, target := range map[string]string{"": mode, "-nft": "-nft", "-legacy": "-legacy"} {
				path, err := lookPath(family + target + part)
				if err != nil {
					t.Fatal(err)
				}
				if path, err = filepath.EvalSymlinks(path); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(path, filepath.Join(dir, family+name+part)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return filepath.Join(dir, "iptables")
}

// found starts again like a daemon that may choose its mode, in the node's namespace.
func (n *bed) found(o Options) (*bed, string) {
	n.t.Helper()
	now := &bed{t: n.t, ns: n.ns}
	var log strings.Builder
	o.Log, o.PrimaryWait, o.RouteBackoff = slog.New(slog.NewTextHandler(&log, nil)), n.host.opts.PrimaryWait, n.host.opts.RouteBackoff
	o.Observe = func(r Run) {
		now.mu.Lock()
		defer now.mu.Unlock()
		now.runs = append(now.runs, r)
	}
	n.do(func() (err error) { now.host, err = New(n.t.Context(), o); return err })
	now.tool = "iptables-nft"
	if now.host.inUse().backend == rules.IPTables {
		now.tool = "iptables-legacy"
	}
	return now, log.String()
}

const (
	nftChain    = "iptables-nft -t mangle -N KUBE-KUBELET-CANARY\n"
	legacyChain = "iptables-legacy -t mangle -N KUBE-KUBELET-CANARY\n"
)

// Rules are written to the backend that the node's own programs use, in both families, and
// later starts choose the same one, with or without our rules.
func TestNew_FollowsTheNode(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, script, plainNFT, plainLegacy, reason string }{
		{"nothing", "", "iptables-nft", "iptables-legacy", "nothing on the node indicates it"},
		{"kubelet's chain in nf_tables", nftChain, "iptables-nft", "iptables-nft", "chain KUBE-KUBELET-CANARY in nf_tables"},
		{"kubelet's chain in nf_tables, IPv6", "ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT", "iptables-nft", "iptables-nft", "chain KUBE-IPTABLES-HINT in nf_tables"},
		{"kubelet's chain in the legacy backend", legacyChain, "iptables-legacy", "iptables-legacy", "chain KUBE-KUBELET-CANARY in the legacy"},
		{"kubelet's chain in the legacy backend, IPv6", "ip6tables-legacy -t mangle -N KUBE-IPTABLES-HINT", "iptables-legacy", "iptables-legacy", "chain KUBE-IPTABLES-HINT in the legacy"},
		{"kubelet's chains in both", nftChain + legacyChain, "iptables-nft", "iptables-nft", "in nf_tables"},
		{"legacy against more rules", legacyChain + "iptables-nft -A INPUT -j ACCEPT\niptables-nft -A INPUT -j ACCEPT", "iptables-legacy", "iptables-legacy", "chain KUBE-KUBELET-CANARY"},
		{"kube-proxy's own table", legacyChain + "nft add table ip kube-proxy", "iptables-nft", "iptables-nft", "table ip kube-proxy in nf_tables"},
		{"more rules in the legacy backend", "iptables-legacy -A INPUT -j ACCEPT", "iptables-legacy", "iptables-legacy", "legacy backend holds more"},
		{"more rules in the legacy backend, IPv6", "iptables-nft -A INPUT -j ACCEPT\nip6tables-legacy -A INPUT -j ACCEPT\nip6tables-legacy -A INPUT -j ACCEPT", "iptables-legacy", "iptables-legacy", "legacy backend holds more"},
		{"more rules in nf_tables", "iptables-legacy -A INPUT -j ACCEPT\niptables-nft -A INPUT -j ACCEPT\nip6tables-nft -A INPUT -j ACCEPT", "iptables-nft", "iptables-nft", "nf_tables holds more"},
	} {
		for plain, want := range map[string]string{"-nft": row.plainNFT, "-legacy": row.plainLegacy} {
			t.Run(row.name+", iptables"+plain, func(t *testing.T) {
				t.Parallel()
				first := newBed(t, "iptables-nft")
				first.sh(row.script)
				reason := row.reason
				if plain == "-nft" && !strings.Contains(row.script, "-legacy ") {
					reason = "the legacy backend has no table"
				}
				for _, ours := range []bool{false, true} {
					n, log := first.found(Options{IPTables: withPlain(t, plain)})
					if n.tool != want || !strings.Contains(log, reason) || !strings.Contains(log, "backend="+n.host.Backend()) {
						t.Fatalf("works with %s, with rules of ours %v:\n%s", n.tool, ours, log)
					}
					n.setup(v6Egress)
					n.inBackend(want)
					n.quiet(v6Egress)
				}
			})
		}
	}
}

// inBackend checks where SNAT and the IPv6 guard are.
func (n *bed) inBackend(want string) {
	n.t.Helper()
	for _, tool := range []string{"iptables-nft", "iptables-legacy"} {
		v4, v6 := withoutComments(n.sh(tool+"-save")), withoutComments(n.sh(ip6tables(tool)+"-save"))
		if snat, guarded := strings.Contains(v4, "-j SNAT"), strings.Contains(v6, guard6); snat != (tool == want) || guarded != (tool == want) {
			n.t.Errorf("%s: SNAT %v, guard %v; want them in %s", tool, snat, guarded, want)
		}
	}
}

// Only our own rules, from an earlier run in the other backend, are no reason to stay
// there, and are removed.
func TestNew_OwnRulesIgnored(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-legacy")
	n.setup(v6Egress)
	now, log := n.found(Options{})
	if now.tool != "iptables-nft" || !strings.Contains(log, "nothing on the node indicates it") {
		t.Fatalf("works with %s:\n%s", now.tool, log)
	}
	now.setup(v6Egress)
	now.inBackend("iptables-nft")
	if got := n.saved(); strings.Contains(got, "AWS") {
		t.Errorf("left in the legacy backend:\n%s", got)
	}
}

// The number of programs that a start runs, besides the first pass.
func TestNew_Programs(t *testing.T) {
	t.Parallel()
	for script, want := range map[string][]string{
		"":          {"iptables"},
		nftChain:    {"iptables"},
		legacyChain: {"iptables", "iptables-legacy-save", "nft"},
	} {
		first := newBed(t, "iptables-nft")
		first.sh(script)
		n, _ := first.found(Options{IPTables: withPlain(t, "-nft")})
		if got := n.programsRun(); !cmp.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("%q: ran %q", script, got)
		}
	}
	n, _ := newBed(t, "iptables-nft").found(Options{IPTables: "iptables-legacy"})
	if got := n.programsRun(); !cmp.Equal(got, []string{"iptables-legacy"}) {
		t.Errorf("without a choice: ran %q", got)
	}
}

// A kernel without nf_tables has only legacy tables; any other failure of nft is ignored.
func TestNew_WithoutNFTables(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]string{
		"netlink: Error: cache initialization failed: Protocol not supported":              "iptables-legacy",
		"netlink: Error: cache initialization failed: Invalid argument":                    "iptables-legacy",
		"Operation not permitted (you must be root)\nnetlink: Error: cache initialization": "iptables-nft",
		"nft: error while loading shared libraries":                                        "iptables-nft",
	} {
		nft := filepath.Join(t.TempDir(), "nft")
		if err := os.WriteFile(nft, []byte("#!/bin/sh\necho '"+says+"' >&2\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		first := newBed(t, "iptables-nft")
		first.sh("iptables-legacy -A INPUT -j ACCEPT") // otherwise nft is not run
		n, log := first.found(Options{IPTables: withPlain(t, "-nft"), NFT: nft})
		if n.tool != want {
			t.Errorf("%s: works with %s:\n%s", says, n.tool, log)
		}
		if want == "iptables-legacy" {
			n.setup(v6Egress)
			n.inBackend(want)
		}
	}
}
