package rules

import (
	"fmt"
	"net/netip"
	"slices"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/iptables"
)

// Comments of our rules. In the kernel's own chains they distinguish our rules from those
// of other programs.
const (
	commentSNATJump     = "AWS SNAT CHAIN"
	commentSNATExcluded = "AWS SNAT CHAIN EXCLUSION"
	commentSNAT         = "AWS, SNAT"
	commentPrimaryENI   = "AWS, primary ENI"
	commentOutbound     = "AWS, outbound connections"
	commentConnmark     = "AWS, CONNMARK"
	commentConnmarkCIDR = "AWS CONNMARK CHAIN" // releases to v1.22 added ", VPC CIDR"
)

// wantedRuleset is what iptables should contain, in the form that iptables-save prints.
func wantedRuleset(in NodeInput) iptables.Ruleset {
	if in.IPv6 { // none of the SNAT and marks of an IPv4 cluster
		r := NoRuleset()
		r.Tables[0] = filterTable(false, true)
		return r
	}
	return iptables.Ruleset{Tables: []iptables.Table{
		filterTable(false, false),
		{Name: "mangle", Chains: []iptables.Chain{{Name: "PREROUTING", Policy: "ACCEPT", Rules: mangleRules(in)}}},
		{Name: "nat", Chains: natChains(in)},
	}}
}

func mangleRules(in NodeInput) []string {
	var out []string
	mark := fmt.Sprintf("%#x", in.ConnMark)
	restore := func(prefix string) string {
		return fmt.Sprintf(`-i %s+ -m comment --comment "%s" -j CONNMARK --restore-mark --nfmask %s --ctmask %s`,
			prefix, commentPrimaryENI, mark, mark)
	}
	if in.NodePortSupport {
		out = append(out, fmt.Sprintf(`-i %s -m comment --comment "%s" -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-xmark %s/%s`,
			in.PrimaryLink, commentPrimaryENI, mark, mark))
	}
	if in.NodePortSupport || !in.ExternalSNAT {
		out = append(out, restore(in.VethPrefix))
	}
	// With the prefix "vlan" this would repeat the same rule.
	if in.NodePortSupport && in.VethPrefix != netnames.BranchVethPrefix {
		out = append(out, restore(netnames.BranchVethPrefix))
	}
	return out
}

func natChains(in NodeInput) []iptables.Chain {
	pre := iptables.Chain{Name: "PREROUTING", Policy: "ACCEPT"}
	post := iptables.Chain{Name: "POSTROUTING", Policy: "ACCEPT"}
	// With external SNAT the chain exists too, but is empty.
	snat := iptables.Chain{Name: netnames.SNATChain, Policy: "-"}
	if in.ExternalSNAT {
		return []iptables.Chain{pre, post, snat}
	}
	post.Rules = []string{fmt.Sprintf(`-m comment --comment "%s" -j %s`, commentSNATJump, netnames.SNATChain)}
	snat.Rules = snatRules(in)
	if in.Backend != IPTables {
		return []iptables.Chain{pre, post, snat}
	}
	mark := fmt.Sprintf("%#x", in.ConnMark)
	pre.Rules = []string{
		fmt.Sprintf(`-i %s+ -m comment --comment "%s" -j %s`, in.VethPrefix, commentOutbound, netnames.ConnmarkChain),
		fmt.Sprintf(`-m comment --comment "%s" -j CONNMARK --restore-mark --nfmask %s --ctmask %s`, commentConnmark, mark, mark),
	}
	connmark := iptables.Chain{Name: netnames.ConnmarkChain, Policy: "-", Rules: returns(in.exempt(), commentConnmarkCIDR)}
	connmark.Rules = append(connmark.Rules,
		fmt.Sprintf(`-m comment --comment "%s" -j CONNMARK --set-xmark %s/%s`, commentConnmark, mark, mark))
	return []iptables.Chain{pre, post, connmark, snat}
}

func snatRules(in NodeInput) []string {
	out := returns(ipv4s(in.ExcludeSNATCIDRs), commentSNATExcluded)
	out = append(out, returns(ipv4s(in.VPCCIDRs), commentSNATJump)...)
	return append(out, fmt.Sprintf(`! -o vlan+ -m comment --comment "%s" -m addrtype ! --dst-type LOCAL -j SNAT --to-source %s%s`,
		commentSNAT, in.PrimaryIP, snatPorts(in)))
}

// returns makes a rule per range that leaves the chain. Upstream inserts each at the head,
// so the list comes out reversed.
func returns(cidrs []netip.Prefix, comment string) []string {
	var out []string
	for _, p := range slices.Backward(cidrs) {
		dst := ""
		if p.Bits() > 0 { // iptables omits a destination that matches everything
			dst = "-d " + p.String() + " "
		}
		out = append(out, fmt.Sprintf(`%s-m comment --comment "%s" -j RETURN`, dst, comment))
	}
	return out
}

func snatPorts(in NodeInput) string {
	switch {
	case in.RandomizeSNAT == SNATNone:
		return ""
	case in.RandomizeSNAT == SNATHashRandom || !in.RandomFully:
		return " --random"
	default:
		return " --random-fully"
	}
}
