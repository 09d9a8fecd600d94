package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
)

// BenchmarkPass computes a pass on a node where kube-proxy has 5,000 Services in iptables
// (40,000 rules), with nothing to change.
func BenchmarkPass(b *testing.B) {
	k := newKernel()
	if err := k.restore(rules.DiffRuleset(k.Ruleset, rules.Node(recordedNode()).Ruleset)); err != nil {
		b.Fatal(err)
	}
	nat := &k.Tables[1]
	for i := range 10000 {
		c := iptables.Chain{Name: fmt.Sprintf("KUBE-SVC-%012X", i), Policy: "-"}
		for j := range 4 {
			c.Rules = append(c.Rules, fmt.Sprintf(`-s 10.0.%d.%d/32 -p tcp -m comment --comment "default/service-%d:http" -m tcp -j KUBE-SEP-%d`, i/256, i%256, i, j))
		}
		nat.Chains = append(nat.Chains, c)
	}
	text := k.String()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		current, err := iptables.ParseSave(strings.Clone(text))
		if err != nil {
			b.Fatal(err)
		}
		if script := rules.DiffRuleset(current, rules.Node(recordedNode()).Ruleset); script != "" {
			b.Fatal(script)
		}
	}
}
