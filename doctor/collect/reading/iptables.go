package reading

import (
	"net/netip"
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/iptables"
	"cnictl/doctor/evidence"
)

// Saves holds the output of iptables-save and ip6tables-save for each backend, empty if there
// are no rules.
type Saves struct {
	NFT, NFT6, Legacy, Legacy6 string
	Tables                     *string // output of nft list tables or list ruleset; nil if unknown
	IPv6                       bool    // pods are IPv6, so the FORWARD chain of that family counts
}

// SaveMode returns the backend of the program that printed a text.
func SaveMode(text string) string {
	if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, "nf_tables") {
		return "nft"
	}
	return "legacy"
}

// IPTables reads the rules of both backends. mode is the backend of the host's iptables; its
// FORWARD chain and SNAT rule count, the other's only if it has none.
func IPTables(mode string, s Saves) (evidence.IPTables, error) {
	out := evidence.IPTables{Mode: mode}
	if s.Tables != nil {
		out.NFTTables = nftTables(*s.Tables)
	}
	type backend struct {
		into *evidence.Backend
		four string
		six  string
	}
	order := []backend{{&out.NFT, s.NFT, s.NFT6}, {&out.Legacy, s.Legacy, s.Legacy6}}
	if mode == "legacy" {
		order[0], order[1] = order[1], order[0]
	}
	for _, b := range order {
		four, err := iptables.ParseSave(b.four)
		if err != nil {
			return evidence.IPTables{}, err
		}
		six, err := iptables.ParseSave(b.six)
		if err != nil {
			return evidence.IPTables{}, err
		}
		*b.into = backendOf(four, six)
		counts := four
		if s.IPv6 {
			counts = six
		}
		if out.SNATTo == nil {
			out.SNATTo = snatTo(counts)
		}
		if filter, ok := counts.Table("filter"); ok && out.Forward == "" {
			forward, _ := filter.Chain("FORWARD")
			out.Forward, out.ForwardAccepts = forward.Policy, new(accepts(forward))
		}
	}
	if out.Forward == "" {
		out.Forward, out.ForwardAccepts = "ACCEPT", new(false) // no chain there has a policy yet
	}
	return out, nil
}

// backendOf returns the chains that are not built into the kernel, and all rules.
func backendOf(sets ...iptables.Ruleset) evidence.Backend {
	out := evidence.Backend{Chains: []string{}, Rules: []string{}}
	seen := map[string]bool{}
	for _, set := range sets {
		for _, t := range set.Tables {
			for _, c := range t.Chains {
				if name := t.Name + " " + c.Name; c.Policy == "-" && !seen[name] {
					seen[name] = true
					out.Chains = append(out.Chains, name)
				}
				for _, rule := range c.Rules {
					out.Rules = append(out.Rules, strings.TrimRight(t.Name+" -A "+c.Name+" "+rule, " "))
				}
			}
		}
	}
	return out
}

// snatTo returns the target of the SNAT rule in the last of the daemon's chains.
func snatTo(set iptables.Ruleset) *netip.Addr {
	nat, _ := set.Table("nat")
	var to *netip.Addr
	last := -1
	for _, c := range nat.Chains {
		number, ok := strings.CutPrefix(c.Name, "AWS-SNAT-CHAIN-")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < last {
			continue
		}
		for _, rule := range c.Rules {
			_, target, ok := strings.Cut(rule, "-j SNAT --to-source ")
			target, _, _ = strings.Cut(target, " ")
			if a, err := introspect.ParseAddr(target); ok && err == nil {
				to, last = &a, n
			}
		}
	}
	return to
}

// accepts reports whether a rule of the chain accepts what pods send: its only conditions are a
// pod's link or an address range.
func accepts(c iptables.Chain) bool {
	for _, rule := range c.Rules {
		words := strings.Fields(withoutComment(rule))
		ok := len(words) > 1 && words[len(words)-2] == "-j" && words[len(words)-1] == "ACCEPT"
		for i := 0; ok && i < len(words)-2; i += 2 {
			switch words[i] {
			case "-s", "-d":
			case "-i", "-o":
				ok = strings.HasPrefix(words[i+1], "eni") || words[i+1] == "+"
			default:
				ok = false
			}
		}
		if ok {
			return true
		}
	}
	return false
}

// withoutComment strips the comment from a rule.
func withoutComment(rule string) string {
	const match = "-m comment --comment "
	before, after, ok := strings.Cut(rule, match)
	if !ok {
		return rule
	}
	if quoted, err := strconv.QuotedPrefix(after); err == nil {
		return before + after[len(quoted):]
	}
	_, after, _ = strings.Cut(after, " ")
	return before + after
}

// nftTables returns the native nftables tables in the output of nft, without those in which
// iptables-nft keeps its rules.
func nftTables(printed string) []string {
	out := []string{}
	for line := range strings.Lines(printed) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "table" {
			continue
		}
		switch f[2] {
		case "filter", "nat", "mangle", "raw", "security":
			if f[1] == "ip" || f[1] == "ip6" {
				continue
			}
		}
		out = append(out, f[1]+" "+f[2])
	}
	return out
}
