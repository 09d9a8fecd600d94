package hostnet

import (
	"log/slog"
	"testing"
)

// BenchmarkSetupNode measures a pass: "cold" writes everything on an empty node (with the
// kernel's modules loaded), "warm" has nothing to change.
func BenchmarkSetupNode(b *testing.B) {
	for _, tool := range []string{"iptables-nft", "iptables-legacy"} {
		b.Run(tool+"/cold", func(b *testing.B) {
			n := newBed(b, tool)
			n.setup()
			for b.Loop() {
				b.StopTimer()
				n.sh("ip rule del priority 1024; nft flush ruleset; " + tool + "-restore <<'EOF'\n*mangle\nCOMMIT\n*nat\nCOMMIT\nEOF\n")
				n.host.inUse().nftGone = false
				b.StartTimer()
				n.setup()
			}
		})
		b.Run(tool+"/warm", func(b *testing.B) {
			n := newBed(b, tool)
			n.setup()
			for b.Loop() {
				if wrote := n.setup(); wrote != nil {
					b.Fatalf("wrote with %q", wrote)
				}
			}
		})
	}
}

// BenchmarkSetupENI measures "cold", setting up an ENI whose link exists, and "warm", with
// nothing to do.
func BenchmarkSetupENI(b *testing.B) {
	b.Run("cold", func(b *testing.B) {
		n := newBed(b, "iptables-nft")
		n.attach("ens6")
		for b.Loop() {
			b.StopTimer()
			n.sh("ip link set ens6 down; ip addr flush dev ens6; ip rule del priority 32765 2>/dev/null || true")
			b.StartTimer()
			n.setupENI()
		}
	})
	b.Run("warm", func(b *testing.B) {
		n := newBed(b, "iptables-nft")
		n.attach("ens6")
		n.setupENI()
		for b.Loop() {
			n.setupENI()
		}
	})
}

// BenchmarkNew measures a start: with "one" mode of iptables installed, or with "both",
// where kubelet's chain shows which one the node uses.
func BenchmarkNew(b *testing.B) {
	for name, row := range map[string]struct{ iptables, script string }{
		"one": {"iptables-nft", ""}, "both/nft": {"iptables", nftChain}, "both/legacy": {"iptables", legacyChain},
	} {
		b.Run(name, func(b *testing.B) {
			n := newBed(b, "iptables-nft")
			n.sh(row.script)
			o := n.host.opts
			o.IPTables, o.Log = row.iptables, slog.New(slog.DiscardHandler)
			for b.Loop() {
				n.do(func() error { _, err := New(n.t.Context(), o); return err })
			}
		})
	}
}
