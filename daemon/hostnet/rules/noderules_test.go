package rules_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
)

func TestDiffNodeRules(t *testing.T) {
	t.Parallel()
	want := rules.Node(recordedNode(moreServices)).IPRules
	mark := func(m uint32) netstate.Rule { return netstate.Rule{Priority: 1024, Mark: m, Mask: m, Table: 254} }
	service := func(cidr string) netstate.Rule {
		return netstate.Rule{Priority: 1535, To: netip.MustParsePrefix(cidr), Table: 254}
	}
	foreign := []netstate.Rule{
		{Priority: 0, Table: 255},
		{Priority: 1024, Mark: 0x40, Mask: 0x40, Table: 9},
		{Priority: 1024, Mark: 0x40, Mask: 0xc0, Table: 254},
		{Priority: 1024, Mark: 0x40, Mask: 0x40, Table: 254, Other: true},
		{Priority: 1025, Mark: 0x40, Mask: 0x40, Table: 254},
		{Priority: 1535, From: netip.MustParsePrefix("10.0.0.0/8"), To: netip.MustParsePrefix("10.0.0.0/8"), Table: 254},
		{Priority: 32766, Table: 254},
	}
	if d := diffChanges(want, nil, rules.DiffNodeRules(foreign, want, false)); d != "" {
		t.Errorf("fresh (-want +got):\n%s", d)
	}
	current := append(append([]netstate.Rule{mark(0x40), service("172.21.0.0/16"), mark(0x80)}, foreign...), mark(0x80))
	add := []netstate.Rule{service("172.20.0.0/16"), service("10.9.8.7/32")}
	remove := []netstate.Rule{mark(0x40), service("172.21.0.0/16"), mark(0x80)}
	if d := diffChanges(add, remove, rules.DiffNodeRules(current, want, false)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := rules.DiffNodeRules(append(foreign, want...), want, false); got != nil {
		t.Errorf("same: %v", got)
	}
}

func TestDiffNodeRules_StrictMode(t *testing.T) {
	t.Parallel()
	router := netstate.Rule{From: netip.MustParsePrefix("fe80:ec2::1/128"), Protocol: 58, Table: 255, IPv6: true}
	pod := netstate.Rule{Priority: 10, InLink: "vlan0d7763386da", Table: 103}
	for _, ipv6 := range []bool{false, true} {
		family := func(list ...netstate.Rule) (out []netstate.Rule) {
			for _, r := range list {
				if r.IPv6 = ipv6; ipv6 || r != (netstate.Rule{From: router.From, Protocol: 58, Table: 255}) {
					out = append(out, r)
				}
			}
			return out
		}
		kernels, moved := netstate.Rule{Table: 255}, netstate.Rule{Priority: 20, Table: 255}
		ended := pod
		ended.Other = true
		cilium := netstate.Rule{Priority: 100, Table: 255}
		for _, row := range []struct {
			name                 string
			strict               bool
			current, add, remove []netstate.Rule
		}{
			{"never on", false, family(kernels), nil, nil},
			{"moved by another agent", false, family(cilium), nil, nil},
			{"switched on", true, family(kernels), family(router, moved), family(kernels)},
			{"on", true, family(router, pod, moved), nil, nil},
			{"half done", true, family(kernels, router, moved), nil, family(kernels)},
			{"switched off", false, family(router, moved), family(kernels), family(router, moved)},
			{"switched off with a living pod", false, family(router, pod, moved), nil, nil},
			{"switched off, both rules, with a living pod", false, family(kernels, router, pod, moved), nil, nil},
			{"switched off after the last pod", false, family(router, ended, moved), family(kernels), family(router, moved)},
		} {
			want := rules.Node(recordedNode(func(in *rules.NodeInput) {
				in.IPv6, in.StrictPodENI = ipv6, row.strict
				in.NodePortSupport, in.ExternalSNAT = false, true // no rule for the mark
			})).IPRules
			if d := diffChanges(row.add, row.remove, rules.DiffNodeRules(row.current, want, ipv6)); d != "" {
				t.Errorf("%s, IPv6 %t (-want +got):\n%s", row.name, ipv6, d)
			}
		}
	}
}

// Rules of one address family are removed if the node's cluster has the other family.
func TestDiffNodeRules_OtherFamily(t *testing.T) {
	t.Parallel()
	four := rules.Node(recordedNode(moreServices)).IPRules
	six := rules.Node(recordedNode(ipv6Node, moreServices)).IPRules
	if d := diffChanges(nil, four, rules.DiffNodeRules(four, six, false)); d != "" {
		t.Errorf("IPv4 rules of an IPv6 node (-want +got):\n%s", d)
	}
	if d := diffChanges(nil, six, rules.DiffNodeRules(six, four, true)); d != "" {
		t.Errorf("IPv6 rules of an IPv4 node (-want +got):\n%s", d)
	}
	if d := diffChanges(six, nil, rules.DiffNodeRules(nil, six, true)); d != "" || len(six) != 1 {
		t.Errorf("IPv6 node (-want +got):\n%s", d)
	}
}

// From any mix of our rules and others': one pass reaches the wanted state, the next finds
// nothing to do, others' rules stay, and the node's own addresses remain reachable
// throughout if they were before.
func TestDiffNodeRules_Converges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 11))
		ipv6 := rng.IntN(2) == 0
		others := []netstate.Rule{
			{Priority: 100, Table: 255, IPv6: ipv6}, {Priority: 512, Table: 254, IPv6: ipv6}, {Priority: 1024, Mark: 1, Mask: 3, Table: 254, IPv6: ipv6},
			{Priority: 10, InLink: "vlan0d7763386da", Table: 103, IPv6: ipv6}, {Priority: 20, Table: 255, InLink: "lo", IPv6: ipv6}, {Priority: 32766, Table: 254, IPv6: ipv6},
		}
		var current []netstate.Rule
		add := func(r netstate.Rule) {
			if r.IPv6 == ipv6 && rng.IntN(2) == 0 && !slices.Contains(current, r) {
				current = append(current, r)
			}
		}
		for _, r := range slices.Concat([]netstate.Rule{{Table: 255, IPv6: ipv6}}, others, rules.Node(randomStrict(rng)).IPRules, rules.Node(randomStrict(rng)).IPRules) {
			add(r)
		}
		isLocal := func(r netstate.Rule) bool { return r.Table == 255 && !r.Restricted() }
		want := rules.Node(randomStrict(rng)).IPRules
		after := slices.Clone(current)
		for _, c := range rules.DiffNodeRules(current, want, ipv6) {
			r := c.Rule
			if c.Do == netstate.AddRule {
				after = append(after, r)
				continue
			}
			if slices.Contains(others, r) {
				t.Fatalf("seed %d: removes a rule of others: %s", seed, r)
			}
			i := slices.Index(after, r)
			if i < 0 {
				t.Fatalf("seed %d: removes what is not there: %s", seed, r)
			}
			after = slices.Delete(after, i, i+1)
			if slices.ContainsFunc(current, isLocal) && !slices.ContainsFunc(after, isLocal) {
				t.Fatalf("seed %d: no rule for the node's own addresses after %s was removed", seed, r)
			}
		}
		if again := rules.DiffNodeRules(after, want, ipv6); again != nil {
			t.Fatalf("seed %d: second pass %v", seed, again)
		}
		for _, r := range want {
			if r.IPv6 == ipv6 && !slices.Contains(after, r) {
				t.Fatalf("seed %d: %s is missing", seed, r)
			}
		}
	}
}

func randomStrict(rng *rand.Rand) rules.NodeInput {
	in := randomInput(rng)
	in.StrictPodENI = rng.IntN(2) == 0
	if rng.IntN(2) == 0 {
		moreServices(&in)
	}
	return in
}
