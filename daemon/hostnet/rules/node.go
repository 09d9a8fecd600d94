package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/iptables"
	"cnictl/daemon/netstate"
)

// Backend is where the rules that mark connections are.
type Backend string

const (
	NFTables Backend = "nftables" // native table `ip aws-cni`
	IPTables Backend = "iptables" // nat table of iptables
)

// Values of NodeInput.RandomizeSNAT. Any other value means SNATPRNG.
const (
	SNATPRNG       = "prng"       // --random-fully, or --random if iptables is too old
	SNATHashRandom = "hashrandom" // --random
	SNATNone       = "none"       // the kernel's choice
)

// NodeInput holds the facts and settings that determine the state of a node.
type NodeInput struct {
	// IPv6 is the family of the cluster's pods. On IPv6 nodes nothing is translated, so
	// PrimaryIP, the ranges, RandomizeSNAT and VethPrefix are ignored.
	IPv6 bool

	PrimaryMAC  string     // colon form; finds the link
	PrimaryIP   netip.Addr // IPv4
	PrimaryLink string     // name of the primary ENI's link
	MTU         int        // of the primary ENI's link; 0 leaves it unchanged

	VPCCIDRs             []netip.Prefix // in the order of the metadata service
	ExcludeSNATCIDRs     []netip.Prefix
	ExternalServiceCIDRs []netip.Prefix
	ExternalSNAT         bool
	NodePortSupport      bool
	RandomizeSNAT        string
	ConnMark             uint32 // non-zero
	VethPrefix           string // 1 to 4 characters
	// V6Egress: pods of an IPv4 cluster get IPv6 addresses for traffic that leaves the
	// node.
	V6Egress bool
	// StrictPodENI: security groups for pods are on, in strict mode.
	StrictPodENI bool

	Backend     Backend
	RandomFully bool // iptables supports --random-fully (1.6.2)
}

// Validate refuses inputs from which no usable state follows.
func (in NodeInput) Validate() error {
	switch {
	case in.ConnMark == 0:
		return errors.New("connection mark is 0")
	case in.PrimaryLink == "" || strings.ContainsAny(in.PrimaryLink, " \t\n\"'\\"):
		return fmt.Errorf("primary link name %q is not usable in a rule", in.PrimaryLink)
	case in.Backend != NFTables && in.Backend != IPTables:
		return fmt.Errorf("unknown connmark backend %q", in.Backend)
	case in.IPv6:
		return nil
	case !in.PrimaryIP.Is4():
		return fmt.Errorf("primary address %s is not IPv4", in.PrimaryIP)
	case in.VethPrefix == "" || len(in.VethPrefix) > netnames.MaxVethPrefix:
		// An empty prefix would match every link of the node.
		return fmt.Errorf("veth prefix %q is not 1 to %d characters long", in.VethPrefix, netnames.MaxVethPrefix)
	case strings.ContainsAny(in.VethPrefix, " \t\n\"'\\+*/;{}"):
		return fmt.Errorf("veth prefix %q has a character that no link name has", in.VethPrefix)
	case !in.ExternalSNAT && len(in.exempt()) == 0:
		return errors.New(textNoExemptCIDRs)
	}
	return nil
}

// exempt lists the ranges to which traffic keeps the pod's address.
func (in NodeInput) exempt() []netip.Prefix {
	return ipv4s(in.VPCCIDRs, in.ExcludeSNATCIDRs)
}

// ipv4s joins lists, without IPv6 and without duplicates.
func ipv4s(lists ...[]netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	seen := map[netip.Prefix]bool{}
	for _, list := range lists {
		for _, p := range list {
			p = p.Masked()
			if p.IsValid() && p.Addr().Is4() && !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// NodeState is what the kernel of a node should contain.
type NodeState struct {
	// Ruleset holds our chains as a whole, and our rules of the kernel's chains.
	Ruleset  iptables.Ruleset
	Ruleset6 iptables.Ruleset // the same for ip6tables
	NFT      *NFTTable        // nil: the table should not exist
	IPRules  []netstate.Rule
	Sysctls  []netstate.Sysctl
	Link     string // primary ENI
	MTU      int    // of Link; 0: unchanged
}

// Node computes the wanted state from a valid input.
func Node(in NodeInput) NodeState {
	s := NodeState{
		Ruleset:  wantedRuleset(in),
		Ruleset6: WantedRuleset6(in),
		IPRules:  nodeIPRules(in),
		Link:     in.PrimaryLink,
		MTU:      in.MTU,
		Sysctls:  Sysctls(in.IPv6, in.V6Egress, in.PrimaryLink),
	}
	if in.Backend == NFTables && !in.ExternalSNAT && !in.IPv6 {
		s.NFT = wantedNFT(in)
	}
	return s
}

// Sysctls returns the settings that a node needs, given the link of its primary ENI, in the
// order in which they must be made. The init container makes them, and network daemons undo
// them.
func Sysctls(ipv6, egress6 bool, link string) []netstate.Sysctl {
	// Replies to pods on other ENIs arrive on the primary one: the strict check would drop
	// them.
	out := []netstate.Sysctl{{Path: "net/ipv4/conf/" + link + "/rp_filter", Value: "2"}}
	if ipv6 {
		out = append(out, netstate.Sysctl{Path: netstate.IPv6Setting("all", "disable_ipv6"), Value: "0"})
	}
	if !ipv6 && !egress6 {
		return out
	}
	return append(out,
		// A host that forwards accepts router advertisements only with 2, and drops a
		// default route learned from one when it starts to forward: so 2 comes first.
		netstate.Sysctl{Path: netstate.IPv6Setting(link, "accept_ra"), Value: "2"},
		netstate.Sysctl{Path: netstate.IPv6Setting("all", "forwarding"), Value: "1"})
}

// String prints the state as a node's tools print it, section by section.
func (s NodeState) String() string {
	var b strings.Builder
	b.WriteString("# ip link\n")
	b.WriteString(s.Link)
	if s.MTU > 0 {
		fmt.Fprintf(&b, " mtu %d", s.MTU)
	}
	b.WriteString("\n# ip" + familyOption(s.IPRules) + " rule\n")
	for _, r := range s.IPRules {
		b.WriteString(strings.Replace(r.String(), ": ", ":\t", 1) + "\n")
	}
	b.WriteString("# sysctl\n")
	for _, c := range s.Sysctls {
		b.WriteString(c.String() + "\n")
	}
	b.WriteString("# iptables-save\n")
	b.WriteString(s.Ruleset.String())
	if Wants(s.Ruleset6) {
		b.WriteString("# ip6tables-save\n")
		b.WriteString(s.Ruleset6.String())
	}
	if s.NFT != nil {
		b.WriteString("# nft list table ip " + netnames.NFTTable + "\n")
		b.WriteString(s.NFT.String())
	}
	return b.String()
}

func familyOption(list []netstate.Rule) string {
	if len(list) > 0 && list[0].IPv6 {
		return " -6"
	}
	return ""
}
