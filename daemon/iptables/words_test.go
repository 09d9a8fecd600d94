package iptables_test

import (
	"testing"

	"cnictl/daemon/iptables"
)

func TestTargetAndComment(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ rule, target, comment string }{
		{`-m comment --comment "AWS, SNAT" -j SNAT --to-source 10.0.0.1`, "SNAT", "AWS, SNAT"},
		{`-m comment --comment "say \"-j X\"" -g CNI`, "CNI", `say "-j X"`},
		{`-m comment --comment "-j" X`, "", "-j"},
		{`-m comment --comment "open`, "", "open"},
		{`-i eth0 -j`, "", ""},
		{``, "", ""},
	} {
		if target, comment := iptables.Target(row.rule), iptables.Comment(row.rule); target != row.target || comment != row.comment {
			t.Errorf("%s: target %q, comment %q", row.rule, target, comment)
		}
	}
}
