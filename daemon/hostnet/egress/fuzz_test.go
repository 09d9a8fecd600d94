package egress

import (
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/iptables"
)

// header starts a nat table as the kernel prints it.
const header = "*nat\n:POSTROUTING ACCEPT [0:0]\n"

// FuzzTable: for any output of iptables-save, Remove and Repair return transactions after
// which the table has nothing, or exactly what is wanted. apply runs them here.
func FuzzTable(f *testing.F) {
	s := SNAT{Chain: Chain(false, DefaultNetwork, "c1"), Comment: Comment(DefaultNetwork, "c1")}
	f.Add(header+s.String()+"COMMIT\n", "c1")
	f.Add("*nat\n:A - [0:0]\n-A A -m comment --comment \"a -j "+s.Chain+"\" -j RETURN\n-A A -g "+s.Chain+"\n", "c1")
	f.Add("*filter\n-A X -j Y\nCOMMIT\n*nat\n-A \n-A A -j\n:\n", "")
	f.Add("*nat\n:A - [0:0]\n-A A --comment \"\\\"", `c"1\`)
	f.Fuzz(func(t *testing.T, saved, id string) {
		want := SNAT{Chain: Chain(false, DefaultNetwork, id), Comment: Comment(DefaultNetwork, id)}
		if strings.ContainsAny(id, "\n\"\\") {
			return // no container ID has these
		}
		nat := NAT(saved)
		for _, text := range []string{Remove(nat, want.Chain), Repair(nat, want)} {
			if text != "" && (!strings.HasPrefix(text, "*nat\n") || !strings.HasSuffix(text, "\nCOMMIT\n")) {
				t.Fatalf("transaction %q", text)
			}
		}
		if left := apply(nat, Remove(nat, want.Chain)); len(unlink(left, want.Chain)) != 0 || hasChain(left, want.Chain) {
			t.Errorf("after Remove: %+v", left)
		}
		if now := apply(nat, Repair(nat, want)); !want.In(now) {
			t.Errorf("after Repair: %v in %+v", want.Missing(now), now)
		}
		for _, chain := range Stale(nat, DefaultNetwork, func(string) bool { return false }) {
			if !strings.HasPrefix(chain, "CNI-E") || len(chain) != chainLength {
				t.Errorf("stale %q", chain)
			}
		}
	})
}

func hasChain(nat iptables.Table, chain string) bool { _, ok := nat.Chain(chain); return ok }

// apply does what iptables-restore --noflush does with our lines.
func apply(nat iptables.Table, transaction string) iptables.Table {
	t := iptables.Table{Name: "nat"}
	for _, c := range nat.Chains {
		c.Rules = slices.Clone(c.Rules)
		t.Chains = append(t.Chains, c)
	}
	chainOf := func(name string) *iptables.Chain {
		i := slices.IndexFunc(t.Chains, func(c iptables.Chain) bool { return c.Name == name })
		if i < 0 {
			i = len(t.Chains)
			t.Chains = append(t.Chains, iptables.Chain{Name: name, Policy: "-"})
		}
		return &t.Chains[i]
	}
	for line := range strings.SplitSeq(transaction, "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		chain, spec, _ := strings.Cut(rest, " ")
		switch {
		case strings.HasPrefix(line, ":"):
			chainOf(verb[1:]).Rules = nil
		case verb == "-A":
			c := chainOf(chain)
			c.Rules = append(c.Rules, spec)
		case verb == "-D":
			c := chainOf(chain)
			if i := slices.Index(c.Rules, spec); i >= 0 {
				c.Rules = slices.Delete(c.Rules, i, i+1)
			}
		case verb == "-F":
			chainOf(chain).Rules = nil
		case verb == "-X":
			t.Chains = slices.DeleteFunc(t.Chains, func(c iptables.Chain) bool { return c.Name == chain })
		}
	}
	return NAT(iptables.Ruleset{Tables: []iptables.Table{t}}.String())
}

// FuzzHolder: for any lease, the rules of its sandbox are separate lines that parse back to
// the same rules.
func FuzzHolder(f *testing.F) {
	f.Add("169.254.172.2", "c1\r\neth0")
	f.Add("fd00::ac:2", "c1")
	f.Add("169.254.172.2", "c1\" -j ACCEPT")
	f.Fuzz(func(t *testing.T, name, text string) {
		x, ok := ParseHolder(name, text)
		if !ok {
			return
		}
		s, err := Wanted(DefaultNetwork, x.ContainerID, x.Address, x.Address, RandomHash)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := translation(NAT(header+s.String()+"COMMIT\n"), DefaultNetwork, x); !ok || got != s {
			t.Errorf("%+v reads back as %+v", s, got)
		}
	})
}
