package rules

import (
	"strings"
	"testing"
)

// FuzzTable: whatever iptables-save prints, what Remove and Repair give leaves the table
// without, or with exactly, what is wanted: the transactions are applied to a table here.
func FuzzTable(f *testing.F) {
	s := SNAT{Chain: Chain(false, DefaultNetwork, "c1"), Comment: Comment(DefaultNetwork, "c1")}
	f.Add("*nat\n"+s.String()+"COMMIT\n", "c1")
	f.Add(":A - [0:0]\n-A A -m comment --comment \"a -j "+s.Chain+"\" -j RETURN\n-A A -g "+s.Chain+"\n", "c1")
	f.Add("*filter\n-A X -j Y\n*nat\n-A \n-A A -j\n:\n", "")
	f.Add("-A A --comment \"\\\"", `c"1\`)
	f.Fuzz(func(t *testing.T, saved, id string) {
		want := SNAT{Chain: Chain(false, DefaultNetwork, id), Comment: Comment(DefaultNetwork, id)}
		if strings.ContainsAny(id, "\n\"\\") {
			return // no container id has these
		}
		for _, text := range []string{Remove(saved, want.Chain), want.Repair(saved)} {
			if text != "" && (!strings.HasPrefix(text, "*nat\n") || !strings.HasSuffix(text, "\nCOMMIT\n")) {
				t.Fatalf("transaction %q", text)
			}
		}
		if left := Parse(apply(saved, Remove(saved, want.Chain))); len(left.unlink(want.Chain)) != 0 || hasChain(left, want.Chain) {
			t.Errorf("after Remove: %+v", left)
		}
		if now := Parse(apply(saved, want.Repair(saved))); !now.Has(want) {
			t.Errorf("after Repair: %v in %+v", now.Missing(want), now)
		}
		for _, chain := range Parse(saved).Stale(DefaultNetwork, func(string) bool { return false }) {
			if !strings.HasPrefix(chain, "CNI-E") || len(chain) != chainLength {
				t.Errorf("stale %q", chain)
			}
		}
	})
}

func hasChain(t Table, chain string) bool { _, ok := t.rules[chain]; return ok }

// apply does what iptables-restore --noflush does with the lines that we write.
func apply(saved, transaction string) string {
	t := Parse(saved)
	for line := range strings.SplitSeq(transaction, "\n") {
		chain, _, _ := strings.Cut(strings.TrimLeft(line, "-:ADFX "), " ")
		if len(line) > 3 && line[0] == '-' {
			chain, _, _ = strings.Cut(line[3:], " ")
		}
		switch {
		case strings.HasPrefix(line, ":"):
			chain, _, _ = strings.Cut(line[1:], " ")
			t.note(chain)
			t.rules[chain] = nil
		case strings.HasPrefix(line, "-A "):
			t.note(chain)
			t.rules[chain] = append(t.rules[chain], line)
		case strings.HasPrefix(line, "-D "):
			for i, rule := range t.rules[chain] {
				if rule == "-A"+line[2:] {
					t.rules[chain] = append(append([]string(nil), t.rules[chain][:i]...), t.rules[chain][i+1:]...)
					break
				}
			}
		case strings.HasPrefix(line, "-F "):
			t.rules[chain] = nil
		case strings.HasPrefix(line, "-X "):
			delete(t.rules, chain)
		}
	}
	var out []string
	for _, chain := range t.order {
		if list, ok := t.rules[chain]; ok {
			out = append(append(out, ":"+chain+" - [0:0]"), list...)
		}
	}
	return strings.Join(out, "\n")
}

// FuzzTenant: whatever a lease says, its sandbox's rules are lines of their own that read
// back as they were meant.
func FuzzTenant(f *testing.F) {
	f.Add("169.254.172.2", "c1\r\neth0")
	f.Add("fd00::ac:2", "c1")
	f.Add("169.254.172.2", "c1\" -j ACCEPT")
	f.Fuzz(func(t *testing.T, name, text string) {
		x, ok := ParseTenant(name, text)
		if !ok {
			return
		}
		s, err := Wanted(DefaultNetwork, x.ContainerID, x.Address, x.Address, RandomHash)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := Parse("*nat\n"+s.String()+"COMMIT\n").Translation(DefaultNetwork, x); !ok || got != s {
			t.Errorf("%+v reads back as %+v", s, got)
		}
	})
}
