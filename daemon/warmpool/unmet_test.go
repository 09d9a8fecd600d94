package warmpool

import (
	"fmt"
	"strings"
	"testing"
)

func unmetText(all []UnmetTarget) string {
	var out []string
	for _, u := range all {
		out = append(out, fmt.Sprintf("%s %d/%d %s", u.Target, u.Possible, u.Wanted, u.Limit))
	}
	return strings.Join(out, "; ")
}

func TestUnmet(t *testing.T) {
	t.Parallel()
	pd := Policy{PrefixDelegation: true}
	ip := func(warm, least int) Policy { return Policy{WarmIP: warm, MinIP: least} }
	for _, tt := range []struct {
		name   string
		scene  scene
		policy Policy
		want   string
	}{
		{"met", scene{"primary:aff", t3small, nil}, ip(2, 3), ""},
		{"within reach", scene{"primary:a", t3small, nil}, ip(8, 9), ""},
		{"the type's addresses", scene{"primary:a", t3small, nil}, ip(1000, 10), "WARM_IP_TARGET 8/1000 address-limit; MINIMUM_IP_TARGET 9/10 address-limit"},
		{"MAX_ENI", scene{"primary:a", t3small, nil}, ip(1000, 0).with(maxENI(1)), "WARM_IP_TARGET 2/1000 eni-limit"},
		{"MAX_ENI below what is attached", scene{"primary:a eni:f", t3small, nil}, ip(1000, 0).with(maxENI(1)), "WARM_IP_TARGET 5/1000 eni-limit"},
		{"a slot for the trunk", scene{"primary:", t3small, nil}, ip(7, 0).with(trunkSlot), "WARM_IP_TARGET 6/7 eni-limit"},
		{"ENIs of others", scene{"primary:", t3small, func(s *Snapshot) { s.OtherENIs = []int{2} }}, ip(4, 0), "WARM_IP_TARGET 3/4 eni-limit"},
		{"max-pods", scene{"primary:aa", t3small, nil}, ip(3, 6).with(pods(4)), "WARM_IP_TARGET 2/3 max-pods; MINIMUM_IP_TARGET 4/6 max-pods"},
		{"max-pods is wider", scene{"primary:aa", t3small, nil}, ip(8, 0).with(pods(99)), "WARM_IP_TARGET 7/8 address-limit"},
		{"waiting ADDs come first", scene{"primary:aaa eni:aaa", t3small, func(s *Snapshot) { s.Waiting[0] = 2 }}, ip(2, 0), "WARM_IP_TARGET 1/2 address-limit"},
		{"cooling addresses come back", scene{"primary:ccc", Limits{4, []int{1}}, nil}, ip(3, 0), ""},
		{"quarantined ones may not", scene{"primary:qff", Limits{4, []int{1}}, nil}, ip(3, 0), "WARM_IP_TARGET 2/3 address-limit"},
		{"on its way", scene{"primary:aaa", Limits{4, []int{2}}, pending(Pending{Kind: PendingAttach, Device: 1, IPs: 1})}, ip(3, 0), ""},
		{"late, but on its way", scene{"primary:aaa", Limits{4, []int{2}}, pending(Pending{Kind: PendingAttach, Device: 1, IPs: 1, Late: true})}, ip(3, 0), ""},
		{"no subnet", scene{"primary:aa", t3small, func(s *Snapshot) { s.NoUsableSubnet = true }}, ip(3, 0), "WARM_IP_TARGET 1/3 no-usable-subnet"},
		{"cordoned", scene{"primary:af", t3small, func(s *Snapshot) { s.Unschedulable = true }}, ip(3, 0), "WARM_IP_TARGET 1/3 cordoned"},
		{"cordoned and managed", scene{"primary:af", t3small, func(s *Snapshot) { s.Unschedulable = true }}, ip(3, 0).with(func(p *Policy) { p.ManageUnschedulable = true }), ""},
		{"terminating", scene{"primary:af", t3small, func(s *Snapshot) { s.Terminating = true }}, ip(1000, 0), ""},
		{"ENIs", scene{"primary:a", t3small, nil}, Policy{WarmENI: 3}, "WARM_ENI_TARGET 2/3 address-limit"},
		{"ENIs, IP targets first", scene{"primary:a", t3small, nil}, Policy{WarmENI: 3, WarmIP: 1}, "WARM_ENI_TARGET 0/3 overridden"},
		{"ENIs in prefix mode", scene{"primary:", t3small, nil}, pd.with(func(p *Policy) { p.WarmENI = 1 }), "WARM_ENI_TARGET 0/1 mode"},
		{"prefixes without prefix mode", scene{"primary:a", t3small, nil}, Policy{WarmPrefix: 2}, "WARM_PREFIX_TARGET 0/2 mode"},
		{"prefixes", scene{"primary:A", t3small, nil}, pd.with(func(p *Policy) { p.WarmPrefix = 9 }), "WARM_PREFIX_TARGET 8/9 address-limit"},
		{"prefixes, IP targets first", scene{"primary:A", t3small, nil}, pd.with(func(p *Policy) { p.WarmPrefix, p.MinIP = 9, 145 }), "MINIMUM_IP_TARGET 144/145 address-limit; WARM_PREFIX_TARGET 0/9 overridden"},
		{"slots of the other mode make way", scene{"primary:fff", Limits{4, []int{1}}, nil}, pd.with(func(p *Policy) { p.WarmPrefix = 3 }), ""},
		{"unless pods hold them", scene{"primary:ffa", Limits{4, []int{1}}, nil}, pd.with(func(p *Policy) { p.WarmPrefix = 3 }), "WARM_PREFIX_TARGET 2/3 address-limit"},
		{"a card without a pool", scene{"primary:a", t3small, func(s *Snapshot) { s.Unmanaged = []bool{true} }}, ip(1000, 0), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, p := tt.scene.snapshot(t), timers(tt.policy)
			got := Unmet(s, p, epoch, 0)
			if text := unmetText(got); text != tt.want {
				t.Errorf("%q, want %q", text, tt.want)
			}
			for _, u := range got {
				if u.Limit.Title() == "" {
					t.Errorf("limit %q has no title", u.Limit)
				}
			}
			if more := Unmet(s, p, epoch, 1); more != nil {
				t.Errorf("card 1: %+v", more)
			}
		})
	}
}

// TestUnmet_IsWhatRemains: a pool at rest misses its targets by exactly what Unmet returns.
func TestUnmet_IsWhatRemains(t *testing.T) {
	t.Parallel()
	unmet := 0
	for seed := range uint64(600) {
		d := seeded(seed)
		n := randomNode(t, d)
		for range d(20) {
			if !n.add(0) {
				break
			}
		}
		n.settle()
		n.rest()
		s := n.snapshot()
		po := newPool(&s, &n.policy, n.now, 0)
		perENI := n.limits.IPv4PerENI - 1
		has := map[string]int{
			"WARM_IP_TARGET": po.free(), "MINIMUM_IP_TARGET": po.total,
			"WARM_PREFIX_TARGET": po.free() / prefixSize, "WARM_ENI_TARGET": po.free() / max(1, perENI),
		}
		short := 0
		for _, u := range Unmet(s, n.policy, n.now, 0) {
			if u.Limit.Ignored() {
				continue
			}
			unmet++
			if short++; has[u.Target] != u.Possible {
				t.Errorf("seed %d: the pool has %d, said to be possible: %+v", seed, has[u.Target], u)
			}
		}
		target := targetsOf(po, &n.policy)
		if lacks, why := shortfall(po, target, perENI); lacks > 0 != (short > 0) && why != PoolEmpty && po.free() > 0 {
			t.Errorf("seed %d: the pool lacks %d addresses for %s, %d targets are unmet", seed, lacks, why, short)
		}
		if t.Failed() {
			t.Fatalf("policy %+v, limits %+v\n%s", n.policy, n.limits, n.history())
		}
	}
	if unmet < 100 {
		t.Errorf("%d unmet targets in all", unmet)
	}
}
