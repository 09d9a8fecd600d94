package rules_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
)

// Each row: the script for an input equals <name>.script.txt, and turns
// testdata/upgrade/<name>.before.txt into <name>.after.txt.
func TestDiffRuleset(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change []func(*rules.NodeInput)
	}{
		{"fresh", []func(*rules.NodeInput){iptablesBackend}},
		{"v1.22-to-nft", nil},
		{"v1.22-to-iptables", []func(*rules.NodeInput){iptablesBackend}},
		{"numbered-chains", nil},
		{"settings-changed", []func(*rules.NodeInput){otherPrefix, otherLink, twoBitMark, iptablesBackend}},
		{"external-snat-on", []func(*rules.NodeInput){iptablesBackend, externalSNAT, noNodePort}},
		{"external-snat-off", []func(*rules.NodeInput){iptablesBackend}},
		{"jump-before-services", []func(*rules.NodeInput){iptablesBackend}},
		{"restore-before-jump", []func(*rules.NodeInput){iptablesBackend}},
		{"snat-rule-not-last", nil},
		{"held-by-others", nil},
		{"duplicates", []func(*rules.NodeInput){iptablesBackend}},
		{"ipv6-fresh", []func(*rules.NodeInput){ipv6Node}},
		{"ipv4-to-ipv6", []func(*rules.NodeInput){ipv6Node}},
		{"ipv6-to-ipv4", []func(*rules.NodeInput){iptablesBackend}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			k, err := parseKernel(readFile(t, "upgrade/"+row.name+".before.txt"))
			if err != nil {
				t.Fatal(err)
			}
			foreign := foreignRules(k.Ruleset)
			want := rules.Node(recordedNode(row.change...)).Ruleset
			script := rules.DiffRuleset(k.Ruleset, want)
			golden(t, "upgrade/"+row.name+".script.txt", script)
			if err := k.restore(script); err != nil {
				t.Fatal(err)
			}
			golden(t, "upgrade/"+row.name+".after.txt", k.String())
			if again := rules.DiffRuleset(k.Ruleset, want); again != "" {
				t.Errorf("a second pass writes\n%s", again)
			}
			if d := cmp.Diff(foreign, foreignRules(k.Ruleset)); d != "" {
				t.Errorf("rules of others (-before +after):\n%s", d)
			}
		})
	}
}

// foreignRules returns the rules without our comment and outside our chains, with their
// chains, in order.
func foreignRules(r iptables.Ruleset) []string {
	var out []string
	for _, t := range r.Tables {
		for _, c := range t.Chains {
			if strings.HasPrefix(c.Name, "AWS-") {
				continue
			}
			for _, spec := range c.Rules {
				if !strings.Contains(spec, `--comment "AWS`) && !strings.Contains(spec, `--comment "Block Node Local Pod access via IPv4"`) {
					out = append(out, t.Name+" "+c.Name+" "+spec)
				}
			}
		}
	}
	return out
}

func TestDiffRuleset_OtherSpellings(t *testing.T) {
	t.Parallel()
	// The same rules as printed by other releases of iptables, with ranges in any order.
	current, err := iptables.ParseSave(`*mangle
:PREROUTING ACCEPT [0:0]
-A PREROUTING -m comment --comment "AWS, primary ENI" -i eth0 -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-mark 0x80/0x80
-A PREROUTING -m comment --comment "AWS, primary ENI" -i vlan+ -j CONNMARK --restore-mark --mask 0x80
-A PREROUTING -m comment --comment "AWS, primary ENI" -i eni+ -j CONNMARK --restore-mark --mask 0x80
COMMIT
*nat
:POSTROUTING ACCEPT [0:0]
:AWS-SNAT-CHAIN-0 - [0:0]
[3:4] -A POSTROUTING -m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-0
-A AWS-SNAT-CHAIN-0 -d 10.0.0.0/16 -m comment --comment "AWS SNAT CHAIN" -j RETURN
-A AWS-SNAT-CHAIN-0 -m comment --comment "AWS SNAT CHAIN" -d 100.64.0.0/16 -j RETURN
-A AWS-SNAT-CHAIN-0 -m comment --comment "AWS, SNAT" ! -o vlan+ -m addrtype ! --dst-type LOCAL -j SNAT --random-fully --to-source 10.0.0.10
COMMIT
`)
	if err != nil {
		t.Fatal(err)
	}
	if script := rules.DiffRuleset(current, rules.Node(recordedNode(reversedCIDRs)).Ruleset); script != "" {
		t.Errorf("writes\n%s", script)
	}
}

// Random mixes of our rules (current and stale) and others': one script reaches the wanted
// state, the next is empty, and others' rules keep their order.
func TestDiffRuleset_Converges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		k := randomKernel(rng)
		before := k.String()
		foreign := foreignRules(k.Ruleset)
		in := randomInput(rng)
		want := rules.Node(in).Ruleset
		script := rules.DiffRuleset(k.Ruleset, want)
		if err := k.restore(script); err != nil {
			t.Fatalf("seed %d: %v\nbefore:\n%s\nscript:\n%s", seed, err, before, script)
		}
		if again := rules.DiffRuleset(k.Ruleset, want); again != "" {
			t.Fatalf("seed %d: second script:\n%s\nbefore:\n%s\nfirst script:\n%s", seed, again, before, script)
		}
		if d := cmp.Diff(foreign, foreignRules(k.Ruleset)); d != "" {
			t.Fatalf("seed %d: rules of others (-before +after):\n%s", seed, d)
		}
		checkOrder(t, seed, k.Ruleset, in)
	}
}

func randomInput(rng *rand.Rand) rules.NodeInput {
	var changes []func(*rules.NodeInput)
	for _, c := range []func(*rules.NodeInput){iptablesBackend, externalSNAT, noNodePort, moreCIDRs, otherPrefix, otherLink, twoBitMark, kernelPorts, ipv6Node} {
		if rng.IntN(2) == 0 {
			changes = append(changes, c)
		}
	}
	return recordedNode(changes...)
}

func randomKernel(rng *rand.Rand) *kernel {
	k := newKernel()
	k.Tables = append(k.Tables, iptables.Table{Name: "filter", Chains: []iptables.Chain{{Name: "FORWARD", Policy: "ACCEPT"}}})
	foreign := []string{"-j KUBE-SERVICES", `-s 10.9.0.0/16 -m comment --comment "cali:1" -j MARK --set-xmark 0x1000000/0x1000000`, "-j ACCEPT"}
	nat := &k.Tables[1]
	nat.Chains = append(nat.Chains, iptables.Chain{Name: "KUBE-SERVICES", Policy: "-"})
	for range rng.IntN(3) {
		for _, t := range rules.Node(randomInput(rng)).Ruleset.Tables {
			table := &k.Tables[slices.IndexFunc(k.Tables, func(x iptables.Table) bool { return x.Name == t.Name })]
			for _, c := range t.Chains {
				own := find(table, c.Name)
				if own == nil {
					table.Chains = append(table.Chains, iptables.Chain{Name: c.Name, Policy: "-"})
					own = find(table, c.Name)
				}
				own.Rules = append(own.Rules, c.Rules...)
			}
		}
	}
	for i := range k.Tables {
		for j := range k.Tables[i].Chains {
			c := &k.Tables[i].Chains[j]
			if c.Policy == "ACCEPT" {
				for range rng.IntN(4) {
					c.Rules = append(c.Rules, foreign[rng.IntN(len(foreign))])
				}
				if c.Name == "PREROUTING" || rng.IntN(2) == 0 {
					rng.Shuffle(len(c.Rules), func(a, b int) { c.Rules[a], c.Rules[b] = c.Rules[b], c.Rules[a] })
				}
			}
			if strings.HasPrefix(c.Name, "AWS-") && len(c.Rules) > 1 && rng.IntN(2) == 0 {
				rng.Shuffle(len(c.Rules), func(a, b int) { c.Rules[a], c.Rules[b] = c.Rules[b], c.Rules[a] })
			}
		}
	}
	return k
}

// checkOrder checks the order of rules that packets depend on.
func checkOrder(t *testing.T, seed uint64, r iptables.Ruleset, in rules.NodeInput) {
	t.Helper()
	nat, _ := r.Table("nat")
	if in.IPv6 {
		if text := r.String(); strings.Contains(text, "AWS") || strings.Count(text, "Block Node Local") != 1 {
			t.Fatalf("seed %d: IPv6 node:\n%s", seed, text)
		}
		return
	}
	if !in.ExternalSNAT {
		snat, _ := nat.Chain("AWS-SNAT-CHAIN-0")
		if last := snat.Rules[len(snat.Rules)-1]; !strings.Contains(last, "-j SNAT") {
			t.Fatalf("seed %d: last rule of the SNAT chain is %q", seed, last)
		}
	}
	if in.ExternalSNAT || in.Backend != rules.IPTables {
		return
	}
	pre, _ := nat.Chain("PREROUTING")
	services, jump, restore := -1, -1, -1
	for i, spec := range pre.Rules {
		switch {
		case strings.Contains(spec, "KUBE-SERVICES"):
			services = i
		case strings.Contains(spec, "AWS-CONNMARK-CHAIN-0"):
			jump = i
		case strings.Contains(spec, "--restore-mark"):
			restore = i
		}
	}
	if services > jump || jump < 0 || restore < jump {
		t.Fatalf("seed %d: services %d, jump %d, restore %d:\n%s", seed, services, jump, restore, strings.Join(pre.Rules, "\n"))
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	script := rules.DiffRuleset(newKernel().Ruleset, rules.Node(recordedNode()).Ruleset)
	var got []string
	for i := range strings.Count(script, "\n") {
		if verb, rule, ok := rules.Describe(script, i+1); ok {
			got = append(got, verb+" "+rule)
		}
	}
	// Names as in upstream's recorded log.
	want := []string{
		`add mangle/PREROUTING rule connmark for primary ENI shouldExist true rule [-i eth0 -m comment --comment "AWS, primary ENI" -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-xmark 0x80/0x80]`,
		`add mangle/PREROUTING rule connmark restore for primary ENI shouldExist true rule [-i eni+ -m comment --comment "AWS, primary ENI" -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80]`,
		`add mangle/PREROUTING rule connmark restore for primary ENI from vlan shouldExist true rule [-i vlan+ -m comment --comment "AWS, primary ENI" -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80]`,
		`add nat/AWS-SNAT-CHAIN-0 rule AWS-SNAT-CHAIN-0 shouldExist true rule [-d 10.0.0.0/16 -m comment --comment "AWS SNAT CHAIN" -j RETURN]`,
		`add nat/AWS-SNAT-CHAIN-0 rule last SNAT rule for non-VPC outbound traffic shouldExist true rule [! -o vlan+ -m comment --comment "AWS, SNAT" -m addrtype ! --dst-type LOCAL -j SNAT --to-source 10.0.0.10 --random-fully]`,
		`add nat/POSTROUTING rule first SNAT rules for non-VPC outbound traffic shouldExist true rule [-m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-0]`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, _, ok := rules.Describe(script, 1); ok {
		t.Error("a table line is described as a rule")
	}
	if verb, _, ok := rules.Describe("*nat\n-D POSTROUTING -j X\n", 2); verb != "delete" || !ok {
		t.Error("a deletion is not described")
	}
	if _, _, ok := rules.Describe(script, 9999); ok {
		t.Error("a line beyond the end is described")
	}
}
