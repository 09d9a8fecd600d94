package rules_test

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
)

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// recordedNode is the recorded node.
func recordedNode(change ...func(*rules.NodeInput)) rules.NodeInput {
	in := rules.NodeInput{
		PrimaryMAC:      "02:fa:4e:00:00:01",
		PrimaryIP:       netip.MustParseAddr("10.0.0.10"),
		PrimaryLink:     "eth0",
		MTU:             9001,
		VPCCIDRs:        prefixes("10.0.0.0/16"),
		NodePortSupport: true,
		RandomizeSNAT:   rules.SNATPRNG,
		ConnMark:        0x80,
		VethPrefix:      "eni",
		Backend:         rules.NFTables,
		RandomFully:     true,
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

func iptablesBackend(in *rules.NodeInput) { in.Backend = rules.IPTables }
func externalSNAT(in *rules.NodeInput)    { in.ExternalSNAT = true }
func noNodePort(in *rules.NodeInput)      { in.NodePortSupport = false }
func moreCIDRs(in *rules.NodeInput) {
	in.VPCCIDRs = prefixes("10.0.0.0/16", "100.64.0.0/16", "10.0.0.0/16", "fd00::/64")
	in.ExcludeSNATCIDRs = prefixes("192.168.7.9/32", "172.16.3.0/12", "10.0.0.0/16")
}
func excludeAll(in *rules.NodeInput)  { in.ExcludeSNATCIDRs = prefixes("0.0.0.0/0") }
func hashRandom(in *rules.NodeInput)  { in.RandomizeSNAT = rules.SNATHashRandom }
func kernelPorts(in *rules.NodeInput) { in.RandomizeSNAT = rules.SNATNone }
func oldIPTables(in *rules.NodeInput) { in.RandomFully = false }
func v6Egress(in *rules.NodeInput)    { in.V6Egress = true }
func otherPrefix(in *rules.NodeInput) { in.VethPrefix = "pod" }
func otherLink(in *rules.NodeInput)   { in.PrimaryLink = "ens5" }
func twoBitMark(in *rules.NodeInput)  { in.ConnMark = 0x30 }
func moreServices(in *rules.NodeInput) {
	in.ExternalServiceCIDRs = prefixes("172.20.0.0/16", "10.9.8.7/32")
}
func ipv6Node(in *rules.NodeInput) {
	in.IPv6, in.PrimaryIP, in.VPCCIDRs, in.VethPrefix = true, netip.Addr{}, nil, ""
}
func strictPodENI(in *rules.NodeInput)  { in.StrictPodENI = true }
func otherAddress(in *rules.NodeInput)  { in.PrimaryIP = netip.MustParseAddr("10.0.0.99") }
func noMTU(in *rules.NodeInput)         { in.MTU = 0 }
func reversedCIDRs(in *rules.NodeInput) { in.VPCCIDRs = prefixes("100.64.0.0/16", "10.0.0.0/16") }

var nodeRows = []struct {
	name   string
	change []func(*rules.NodeInput)
}{
	{"defaults-nft", nil},
	{"defaults-iptables", []func(*rules.NodeInput){iptablesBackend}},
	{"external-snat-nft", []func(*rules.NodeInput){externalSNAT}},
	{"external-snat-iptables", []func(*rules.NodeInput){externalSNAT, iptablesBackend}},
	{"no-nodeport-nft", []func(*rules.NodeInput){noNodePort}},
	{"no-nodeport-external-snat", []func(*rules.NodeInput){noNodePort, externalSNAT}},
	{"many-cidrs-nft", []func(*rules.NodeInput){moreCIDRs}},
	{"many-cidrs-iptables", []func(*rules.NodeInput){moreCIDRs, iptablesBackend}},
	{"exclude-all-nft", []func(*rules.NodeInput){excludeAll}},
	{"exclude-all-iptables", []func(*rules.NodeInput){excludeAll, iptablesBackend}},
	{"hashrandom", []func(*rules.NodeInput){hashRandom}},
	{"kernel-ports", []func(*rules.NodeInput){kernelPorts}},
	{"old-iptables", []func(*rules.NodeInput){oldIPTables, iptablesBackend}},
	{"v6-egress-nft", []func(*rules.NodeInput){v6Egress}},
	{"v6-egress-iptables", []func(*rules.NodeInput){v6Egress, externalSNAT, iptablesBackend}},
	{"v6-egress-of-ipv6-node", []func(*rules.NodeInput){v6Egress, ipv6Node}}, // ignored
	{"strict-pod-eni", []func(*rules.NodeInput){strictPodENI}},
	{"ipv6-nft", []func(*rules.NodeInput){ipv6Node}},
	{"ipv6-iptables", []func(*rules.NodeInput){ipv6Node, iptablesBackend}},
	{"ipv6-strict-pod-eni", []func(*rules.NodeInput){ipv6Node, strictPodENI, moreServices, otherLink}},
	{"ipv6-external-snat", []func(*rules.NodeInput){ipv6Node, externalSNAT}},
	{"ipv6-no-mark", []func(*rules.NodeInput){ipv6Node, externalSNAT, noNodePort, noMTU}},
	{"other-names-nft", []func(*rules.NodeInput){otherPrefix, otherLink, twoBitMark, moreServices, noMTU}},
	{"other-names-iptables", []func(*rules.NodeInput){otherPrefix, otherLink, twoBitMark, moreServices, otherAddress, iptablesBackend}},
}

func TestNode(t *testing.T) {
	t.Parallel()
	for _, row := range nodeRows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			in := recordedNode(row.change...)
			if err := in.Validate(); err != nil {
				t.Fatal(err)
			}
			golden(t, "node/"+row.name+".txt", rules.Node(in).String())
		})
	}
}

// TestNode_ExemptNetworks: no connection to a network of the VPC or to an excluded one is marked
// or translated, in either backend: each of them leaves both chains before anything else happens.
func TestNode_ExemptNetworks(t *testing.T) {
	t.Parallel()
	leaves := regexp.MustCompile(`(?:-d|daddr) (\S+) (?:.* )?(?:-j RETURN|return)$`)
	exempt := func(chain []string) []string {
		var out []string
		for _, rule := range chain[:len(chain)-1] {
			m := leaves.FindStringSubmatch(rule)
			if m == nil {
				t.Errorf("%q leaves no chain", rule)
				continue
			}
			out = append(out, strings.TrimSuffix(m[1], "/32"))
		}
		slices.Sort(out)
		return out
	}
	all := []string{"10.0.0.0/16", "100.64.0.0/16", "172.16.0.0/12", "192.168.7.9"}
	for name, backend := range map[string]func(*rules.NodeInput){"nftables": func(*rules.NodeInput) {}, "iptables": iptablesBackend} {
		state := rules.Node(recordedNode(moreCIDRs, backend))
		nat, _ := state.Ruleset.Table("nat")
		chains := map[string][]string{}
		for _, chain := range []string{netnames.SNATChain, netnames.ConnmarkChain} {
			if c, ok := nat.Chain(chain); ok {
				chains[chain] = c.Rules
			}
		}
		if state.NFT != nil {
			for _, c := range state.NFT.Chains {
				if c.Name == netnames.NFTMarkChain {
					chains[c.Name] = c.Rules
				}
			}
		}
		if len(chains) != 2 {
			t.Fatalf("%s: chains %v", name, chains)
		}
		for chain, have := range chains {
			if got := slices.Compact(exempt(have)); !slices.Equal(got, all) { // the SNAT chain has a range of both lists twice, as upstream's
				t.Errorf("%s: %s exempts %q, want %q", name, chain, got, all)
			}
		}
	}
}

// withoutComments removes the "# Generated by" lines.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestNode_SameIPTablesAsRecorded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"secondary", "two-enis", "prefix"} {
		text := readFile(t, "recorded/"+name+".iptables-save.txt")
		recorded, err := iptables.ParseSave(text)
		if err != nil {
			t.Fatal(err)
		}
		want := rules.Node(recordedNode()).Ruleset
		if script := rules.DiffRuleset(recorded, want); script != "" {
			t.Errorf("%s: an upgrade would write\n%s", name, script)
		}
		fresh := newKernel()
		if err := fresh.restore(rules.DiffRuleset(fresh.Ruleset, want)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(withoutComments(text), fresh.String()); d != "" {
			t.Errorf("%s (-recorded +ours):\n%s", name, d)
		}
	}
}

func TestNode_SameNFTTableAsRecordedButForTheRestoreRule(t *testing.T) {
	t.Parallel()
	const (
		theirs = "\t\tcounter packets 0 bytes 0 meta mark set ct mark & 0x00000080\n"
		ours   = "\t\tct mark & 0x00000080 == 0x00000000 meta mark set meta mark & 0xffffff7f\n" +
			"\t\tct mark & 0x00000080 == 0x00000080 meta mark set meta mark | 0x00000080\n"
	)
	for _, name := range []string{"secondary", "two-enis", "prefix"} {
		text := readFile(t, "recorded/"+name+".nft-ruleset.txt")
		recorded, err := rules.ParseNFT(text)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, recorded.String()) {
			t.Errorf("%s: the parsed table does not print as recorded:\n%s", name, recorded)
		}
		want := strings.Replace(recorded.String(), theirs, ours, 1)
		got := rules.Node(recordedNode()).NFT
		if d := cmp.Diff(want, got.String()); d != "" {
			t.Errorf("%s (-recorded, restore rule exchanged +ours):\n%s", name, d)
		}
		script := rules.DiffNFT(recorded, got)
		if d := cmp.Diff(readFile(t, "upgrade/restore-rule.nft"), script); d != "" {
			t.Errorf("%s: upgrade script (-want +got):\n%s", name, d)
		}
	}
}

func TestNodeInput_Validate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*rules.NodeInput)
		want   string
	}{
		{"ok", func(*rules.NodeInput) {}, ""},
		{"no ranges", func(in *rules.NodeInput) { in.VPCCIDRs = nil }, "exemptCIDRs cannot be empty"},
		{"IPv6 ranges only", func(in *rules.NodeInput) { in.VPCCIDRs = prefixes("fd00::/64") }, "exemptCIDRs cannot be empty"},
		{"no ranges with external SNAT", func(in *rules.NodeInput) { in.VPCCIDRs, in.ExternalSNAT = nil, true }, ""},
		{"IPv6 address", func(in *rules.NodeInput) { in.PrimaryIP = netip.MustParseAddr("fd00::1") }, "primary address fd00::1 is not IPv4"},
		{"no address", func(in *rules.NodeInput) { in.PrimaryIP = netip.Addr{} }, "primary address invalid IP is not IPv4"},
		{"IPv6 node", ipv6Node, ""},
		{"IPv6 node without mark", func(in *rules.NodeInput) { ipv6Node(in); in.ConnMark = 0 }, "connection mark is 0"},
		{"no mark", func(in *rules.NodeInput) { in.ConnMark = 0 }, "connection mark is 0"},
		{"no prefix", func(in *rules.NodeInput) { in.VethPrefix = "" }, `veth prefix "" is not 1 to 4 characters long`},
		{"long prefix", func(in *rules.NodeInput) { in.VethPrefix = "abcde" }, `veth prefix "abcde" is not 1 to 4 characters long`},
		{"odd prefix", func(in *rules.NodeInput) { in.VethPrefix = `a"b` }, `veth prefix "a\"b" has a character that no link name has`},
		{"no link", func(in *rules.NodeInput) { in.PrimaryLink = "" }, `primary link name "" is not usable in a rule`},
		{"no backend", func(in *rules.NodeInput) { in.Backend = "" }, `unknown connmark backend ""`},
	} {
		err := recordedNode(row.change).Validate()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
