package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
)

func FuzzParseSave(f *testing.F) {
	f.Add(readFile(f, "recorded/two-enis.iptables-save.txt"))
	f.Add(readFile(f, "upgrade/numbered-chains.before.txt"))
	f.Add("*nat\n:A - [0:0]\n[1:2] -A A -m comment --comment \"a \\\" b\" -j B\nCOMMIT\n")
	f.Add("*nat\n:POSTROUTING ACCEPT [0:0]\n:CNI-E4-82d2b717654a20b90c9ed - [0:0]\n-A POSTROUTING -s 169.254.172.7/32 -j CNI-E4-82d2b717654a20b90c9ed\nCOMMIT\n")
	f.Add("*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING ! -m comment --comment \"AWS, CONNMARK\nCOMMIT\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := iptables.ParseSave(text)
		if err != nil {
			if len(r.Tables) > 0 {
				t.Error("a result beside an error")
			}
			return
		}
		again, err := iptables.ParseSave(r.String())
		if err != nil {
			t.Fatalf("own print does not parse: %v\n%s", err, r)
		}
		again.Foreign = r.Foreign
		if d := cmp.Diff(r, again); d != "" {
			t.Fatalf("printed and parsed (-before +after):\n%s", d)
		}
		for _, in := range []rules.NodeInput{recordedNode(), recordedNode(iptablesBackend, moreCIDRs)} {
			rules.DiffRuleset(r, rules.Node(in).Ruleset)
		}
		removal := rules.RemoveRuleset(r)
		for _, object := range removal.Objects {
			if !strings.Contains(object, "AWS") && !strings.Contains(object, "Block Node Local Pod access") && !strings.Contains(object, "CNI-E") {
				t.Errorf("removes what has no mark of ours: %s", object)
			}
		}
		if removal.Script == "" && len(removal.Objects) > 0 {
			t.Errorf("lists %q and does nothing", removal.Objects)
		}
	})
}

func TestParseNFT(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       *rules.NFTTable
	}{
		{"nothing", "", nil},
		{"other table", "table ip6 aws-cni {\n}\ntable ip nat {\n\tchain a {\n\t\tx\n\t}\n}\n", nil},
		{"empty", "table ip aws-cni {\n}\n", &rules.NFTTable{}},
		{"one line", "table ip aws-cni { }\n", &rules.NFTTable{}},
		{"handles", "table ip aws-cni { # handle 3\n\tchain x { # handle 1\n\t}\n}\n",
			&rules.NFTTable{Chains: []rules.NFTChain{{Name: "x"}}}},
		{"counters", "table ip aws-cni {\n\tchain x {\n\t\tcounter packets 7 bytes 9 accept\n\t}\n}\n",
			&rules.NFTTable{Chains: []rules.NFTChain{{Name: "x", Rules: []string{"counter packets 0 bytes 0 accept"}}}}},
		{"set", "table ip aws-cni {\n\tset s {\n\t\telements = { 10.0.0.0/8,\n\t\t\t11.0.0.0/8 }\n\t}\n\n\tchain x {\n\t\tip daddr { 1.1.1.1,\n\t\t\t2.2.2.2 } accept\n\t\tcounter\n\t}\n}\n",
			&rules.NFTTable{Other: true, Chains: []rules.NFTChain{{Name: "x", Rules: []string{"ip daddr { 1.1.1.1, 2.2.2.2 } accept", "counter"}}}}},
		{"braces in a comment", "table ip aws-cni {\n\tchain x {\n\t\taccept comment \"}}\"\n\t}\n}\n",
			&rules.NFTTable{Chains: []rules.NFTChain{{Name: "x", Rules: []string{`accept comment "}}"`}}}}},
		{"base", "table ip aws-cni {\n\tchain x {\n\t\ttype nat hook prerouting priority -90; policy accept;\n\t\taccept\n\t}\n}\n",
			&rules.NFTTable{Chains: []rules.NFTChain{{Name: "x", Base: "type nat hook prerouting priority -90; policy accept;", Rules: []string{"accept"}}}}},
	} {
		got, err := rules.ParseNFT(row.text)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if d := cmp.Diff(row.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, d)
		}
	}
	for _, text := range []string{"}\n", "table\n", "table ip aws-cni {\n", "table ip aws-cni {\nchain x {\naccept }\n}\n", "table ip aws-cni {\n}\ntable ip aws-cni {\n}\n"} {
		if got, err := rules.ParseNFT(text); err == nil {
			t.Errorf("ParseNFT(%q) = %v", text, got)
		}
	}
}

func TestDiffNFT(t *testing.T) {
	t.Parallel()
	want := rules.Node(recordedNode(moreCIDRs)).NFT
	parse := func(text string) *rules.NFTTable {
		t.Helper()
		table, err := rules.ParseNFT(text)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	edit := func(old, replacement string) *rules.NFTTable {
		t.Helper()
		if !strings.Contains(want.String(), old) {
			t.Fatalf("no %q in the wanted table", old)
		}
		return parse(strings.Replace(want.String(), old, replacement, 1))
	}
	for _, row := range []struct {
		name    string
		current *rules.NFTTable
		want    *rules.NFTTable
		script  string
	}{
		{"nothing to nothing", nil, nil, ""},
		{"remove", want, nil, "delete table ip aws-cni\n"},
		{"create", nil, want, want.String()},
		{"same", parse(want.String()), want, ""},
		{"number instead of name", edit("dstnat + 10", "-90"), want, ""},
		{"words instead of signs", edit("meta mark | 0x00000080", "(meta mark or 0x80)"), want, ""},
		{"counted", edit("packets 0 bytes 0", "packets 12 bytes 99"), want, ""},
		{"ranges in another order", edit("100.64.0.0/16 return\n\t\tcounter packets 0 bytes 0 ip daddr 10.0.0.0/16 return", "10.0.0.0/16 return\n\t\tcounter packets 0 bytes 0 ip daddr 100.64.0.0/16 return"), want, ""},
		{"other priority", edit("dstnat + 10", "dstnat"), want, rules.ReplaceNFT(*want)},
		{"a chain more", edit("\tchain snat-mark", "\tchain x {\n\t}\n\n\tchain snat-mark"), want, rules.ReplaceNFT(*want)},
		{"a set more", edit("\tchain snat-mark", "\tset x {\n\t\ttype ipv4_addr\n\t}\n\n\tchain snat-mark"), want, rules.ReplaceNFT(*want)},
		{"a chain less", edit("chain snat-mark", "chain other"), want, rules.ReplaceNFT(*want)},
	} {
		if d := cmp.Diff(row.script, rules.DiffNFT(row.current, row.want)); d != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, d)
		}
	}
	// A chain with different rules is refilled, the others stay.
	script := rules.DiffNFT(edit("ip daddr 10.0.0.0/16 return", "ip daddr 10.1.0.0/16 return"), want)
	if !strings.HasPrefix(script, "flush chain ip aws-cni snat-mark\nadd rule ip aws-cni snat-mark ") || strings.Contains(script, "nat-prerouting") {
		t.Errorf("other range:\n%s", script)
	}
	// A marking rule before the ranges would mark everything.
	moved := *want
	moved.Chains = append([]rules.NFTChain(nil), want.Chains...)
	moved.Chains[1].Rules = append([]string{moved.Chains[1].Rules[len(moved.Chains[1].Rules)-1]}, moved.Chains[1].Rules[:len(moved.Chains[1].Rules)-1]...)
	if script := rules.DiffNFT(&moved, want); !strings.Contains(script, "flush chain ip aws-cni snat-mark") {
		t.Errorf("marking rule first:\n%s", script)
	}
}

func FuzzParseNFT(f *testing.F) {
	f.Add(readFile(f, "recorded/two-enis.nft-ruleset.txt"))
	f.Add(rules.Node(recordedNode(moreCIDRs, twoBitMark)).NFT.String())
	f.Add("table ip aws-cni {\n\tset s {\n\t\telements = { a,\n b }\n\t}\n\tchain x {\n\t\tip daddr { 1,\n2 } accept\n\t}\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := rules.ParseNFT(text)
		if err != nil {
			if table != nil {
				t.Error("a result beside an error")
			}
			return
		}
		want := rules.Node(recordedNode()).NFT
		rules.DiffNFT(table, want)
		rules.DiffNFT(table, nil)
		if table == nil || table.Other {
			return
		}
		if script := rules.DiffNFT(table, table); script != "" {
			t.Errorf("a table differs from itself:\n%s", script)
		}
	})
}
