package branch_test

import (
	"slices"
	"testing"

	"cnictl/testenv/aws/vpcrc"
	"cnictl/testenv/network/vpc"
)

// TestBranch_IPv6 checks branch ENIs in an IPv6 cluster.
func TestBranch_IPv6(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{strict, standard} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			l.ipv6 = true
			m, other := l.join(mode, vpcrc.Faults{}), l.host()
			a, b, plain := m.run("a"), m.run("b"), m.ordinary("plain")
			if a.IP.String() != a.IPv6 || b.IP.String() != b.IPv6 {
				t.Fatalf("pods have %s and %s, announced were %s and %s", a.IP, b.IP, a.IPv6, b.IPv6)
			}
			l.reaches(mode,
				pair{"a to the other host", a, other.Primary.IPv6s[0]}, pair{"the other host to a", other, a.IP},
				pair{"a to b", a, b.IP}, pair{"b to a", b, a.IP},
				pair{"a to an ordinary pod", a, plain.IP}, pair{"an ordinary pod to a", plain, a.IP},
				pair{"node to a", m, a.IP}, pair{"node to b", m, b.IP}, pair{"a to its node", a, m.Primary.IPv6s[0]},
			)
			gateway := "from " + vpc.GatewayIPv6.String() + " ipproto ipv6-icmp lookup local"
			if has := slices.Contains(m.rules("0", "-6"), gateway); has != (mode == strict) {
				t.Errorf("rules of IPv6:\n%s", m.ip("-6", "rule"))
			}
			if rules := m.rules("10", "-6"); slices.Contains(rules, "from all iif "+a.device()+" lookup "+a.table()) != (mode == strict) {
				t.Errorf("rules of priority 10: %q", rules)
			}
			m.end(a)
			l.reaches("after the end of a", pair{"b to the other host", b, other.Primary.IPv6s[0]})
			m.end(b)
			m.endSandbox(plain)
			m.nothingLeft()
		})
	}
}
