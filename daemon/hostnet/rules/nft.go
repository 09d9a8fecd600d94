package rules

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"cnictl/daemon/api/netnames"
)

// NFTTable is the native table `ip aws-cni`.
type NFTTable struct {
	Chains []NFTChain
	Other  bool // it contains something other than chains
}

// NFTChain is a chain of an NFTTable.
type NFTChain struct {
	Name  string
	Base  string   // "type ... hook ... priority ...; policy ...;", "" for a regular chain
	Rules []string // as printed, with counters 0
}

const (
	// dstnat+10 comes after kube-proxy's translation in both of its modes.
	nftBase    = "type nat hook prerouting priority dstnat + 10; policy accept;"
	nftCounter = "counter packets 0 bytes 0"
)

// wantedNFT is upstream's table except for the restore rule. Upstream stores (connection
// mark & M) in the packet mark, which clears other agents' bits. Here each bit of M is
// copied on its own.
//
// The rules that copy have no counter. Upstream takes any rule of this chain that has a
// counter, masks the connection mark with M and sets the packet mark for its own restore
// rule, whatever comparisons are in between. After a downgrade it would keep one of ours,
// delete the other and never restore the mark. It does not recognise rules without a
// counter, so it deletes them and installs its own.
func wantedNFT(in NodeInput) *NFTTable {
	pre := NFTChain{Name: netnames.NFTPreroutingChain, Base: nftBase, Rules: []string{
		"fib daddr type local return",
		fmt.Sprintf(`iifname "%s*" %s jump %s`, in.VethPrefix, nftCounter, netnames.NFTMarkChain),
	}}
	for rest := in.ConnMark; rest != 0; {
		bit := uint32(1) << bits.TrailingZeros32(rest)
		rest &^= bit
		pre.Rules = append(pre.Rules,
			fmt.Sprintf("ct mark & 0x%08x == 0x00000000 meta mark set meta mark & 0x%08x", bit, ^bit),
			fmt.Sprintf("ct mark & 0x%08x == 0x%08x meta mark set meta mark | 0x%08x", bit, bit, bit))
	}
	mark := NFTChain{Name: netnames.NFTMarkChain}
	for _, p := range slices.Backward(in.exempt()) {
		mark.Rules = append(mark.Rules, fmt.Sprintf("%s ip daddr %s return", nftCounter, nftRange(p.String())))
	}
	mark.Rules = append(mark.Rules, fmt.Sprintf("%s ct mark set ct mark | 0x%08x", nftCounter, in.ConnMark))
	return &NFTTable{Chains: []NFTChain{pre, mark}}
}

// nftRange returns a range as nft prints it: a single address without its length.
func nftRange(cidr string) string { return strings.TrimSuffix(cidr, "/32") }

// String prints the table as `nft list table` does.
func (t NFTTable) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table ip %s {\n", netnames.NFTTable)
	for i, c := range t.Chains {
		if i > 0 {
			b.WriteByte('\n')
		}
		c.print(&b, "\t")
	}
	b.WriteString("}\n")
	return b.String()
}

func (c NFTChain) print(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%schain %s {\n", indent, c.Name)
	if c.Base != "" {
		fmt.Fprintf(b, "%s\t%s\n", indent, c.Base)
	}
	for _, r := range c.Rules {
		fmt.Fprintf(b, "%s\t%s\n", indent, r)
	}
	fmt.Fprintf(b, "%s}\n", indent)
}

// DiffNFT returns the input for `nft -f -` that turns the current table into the wanted
// one, or "" if nothing needs to change. nil means no table. nft applies it as one
// transaction.
func DiffNFT(current, want *NFTTable) string {
	switch {
	case want == nil && current == nil:
		return ""
	case want == nil:
		return "delete table ip " + netnames.NFTTable + "\n"
	case current == nil:
		return want.String()
	case !current.sameChains(*want):
		return ReplaceNFT(*want)
	}
	var flush, fill strings.Builder
	for _, c := range want.Chains {
		if now, _ := current.chain(c.Name); !now.same(c) {
			fmt.Fprintf(&flush, "flush chain ip %s %s\n", netnames.NFTTable, c.Name)
			for _, r := range c.Rules {
				fmt.Fprintf(&fill, "add rule ip %s %s %s\n", netnames.NFTTable, c.Name, r)
			}
		}
	}
	return flush.String() + fill.String()
}

// ReplaceNFT returns the input for `nft -f -` that replaces any existing table by the
// wanted one.
func ReplaceNFT(want NFTTable) string {
	return fmt.Sprintf("add table ip %s\ndelete table ip %s\n", netnames.NFTTable, netnames.NFTTable) + want.String()
}

func (t NFTTable) chain(name string) (NFTChain, bool) {
	for _, c := range t.Chains {
		if c.Name == name {
			return c, true
		}
	}
	return NFTChain{}, false
}

// sameChains reports whether both have the same chains with the same hooks.
func (t NFTTable) sameChains(want NFTTable) bool {
	if t.Other || len(t.Chains) != len(want.Chains) {
		return false
	}
	for _, c := range want.Chains {
		now, ok := t.chain(c.Name)
		if !ok || canonicalNFT(now.Base) != canonicalNFT(c.Base) {
			return false
		}
	}
	return true
}

// same compares content. In the marking chain the order of the ranges does not matter, and
// the marking rule must be last.
func (c NFTChain) same(want NFTChain) bool {
	if len(c.Rules) != len(want.Rules) {
		return false
	}
	a, b := make([]string, len(c.Rules)), make([]string, len(c.Rules))
	for i := range c.Rules {
		a[i], b[i] = canonicalNFT(c.Rules[i]), canonicalNFT(want.Rules[i])
	}
	if last := len(a) - 1; c.Base == "" && last > 0 && a[last] == b[last] {
		slices.Sort(a[:last])
		slices.Sort(b[:last])
	}
	return slices.Equal(a, b)
}
