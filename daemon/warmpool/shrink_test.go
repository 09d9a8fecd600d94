package warmpool

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

func unplaced(s *Snapshot) {
	s.Book.Unplaced = []ipam.Assignment{{Address: netip.MustParseAddr("10.9.9.9")}}
}

func TestPlan_Shrink(t *testing.T) {
	t.Parallel()
	five := Limits{10, []int{5}}
	pd := func(p int) Policy { return Policy{PrefixDelegation: true, WarmPrefix: p} }
	runPlans(t, []planRow{
		{"single addresses beyond the target, highest first", scene{"primary:afff", m5large, nil}, ip(1, 0), 0, `
			unassign 10.0.0.3 10.0.0.2 from eni-0: surplus-ips`},
		{"not below the minimum", scene{"primary:afff", m5large, nil}, ip(1, 3), 0, `
			unassign 10.0.0.3 from eni-0: surplus-ips`},
		{"the emptiest ENI drains first, the primary last", scene{"primary:fff eni:aafff eni:afff", five, nil}, ip(2, 0), 0, `
			unassign 10.2.0.3 10.2.0.2 10.2.0.1 from eni-2: surplus-ips
			unassign 10.1.0.4 10.1.0.3 10.1.0.2 from eni-1: surplus-ips
			unassign 10.0.0.2 from eni-0: surplus-ips`},
		{"what is quarantined is neither counted nor released", scene{"primary:qqf", m5large, nil}, ip(1, 0), 0, ""},
		{"an ENI with a quarantined address stays", scene{"primary:aff eni:fq", five, nil}, ip(2, 0), 0, `
			unassign 10.1.0.0 from eni-1: surplus-ips`},
		{"nothing is done to a quarantined ENI", scene{"primary:af eni:fff", five, func(s *Snapshot) { s.Book.ENIs[1].QuarantinedAt = epoch }}, ip(1, 0), 0, ""},
		{"an empty ENI goes whole", scene{"primary:afff eni:fff", five, nil}, ip(3, 0), 0, `
			detach eni-1: surplus-eni`},
		{"several at once, the rest singly", scene{"primary:fffffffff eni:fffffffff eni:ffff", m5large, nil}, ip(2, 5), 0, `
			detach eni-2: surplus-eni
			detach eni-1: surplus-eni
			unassign 10.0.0.8 10.0.0.7 10.0.0.6 10.0.0.5 from eni-0: surplus-ips`},
		{"an ENI without addresses costs nothing", scene{"primary:af eni:", m5large, nil}, ip(1, 0), 0, `
			detach eni-1: surplus-eni`},
		{"nor one at max-pods, where no target asks for it", scene{"primary:aaaaaaaaa eni:", m5large, nil}, e(0).with(pods(9)), 0, `
			detach eni-1: surplus-eni`},
		{"judged by what is left, not by what the others have", scene{"primary:A eni:F", t3small, nil}, Policy{PrefixDelegation: true, WarmIP: 1, MinIP: 1, WarmPrefix: 1}, 0, `
			detach eni-1: surplus-eni`},
		{"it stays when it is needed", scene{"primary:aaf eni:fff", t3small, nil}, ip(2, 0), 0, `
			unassign 10.1.0.2 10.1.0.1 from eni-1: surplus-ips`},
		{"primary, trunk and EFA stay", scene{"primary:f trunk:f efa:f", five, nil}, ip(0, 1), 0, `
			unassign 10.2.0.0 from eni-2: surplus-ips
			unassign 10.1.0.0 from eni-1: surplus-ips`},
		{"WARM_ENI_TARGET gives back whole ENIs only", scene{"primary:ffffffff eni:affffffff", m5large, nil}, e(1), 0, ""},
		{"all that are too many", scene{"primary:fffffffff eni:fffffffff eni:fffffffff", m5large, nil}, e(1), 0, `
			detach eni-2: surplus-eni
			detach eni-1: surplus-eni`},
		{"WARM_ENI_TARGET=0 keeps the ENI of a full node", scene{"primary:aaaaaaaaa eni:fffffffff", m5large, nil}, e(0), 0, ""},
		{"WARM_ENI_TARGET=0 gives it back otherwise", scene{"primary:aaaaaaaaf eni:fffffffff", m5large, nil}, e(0), 0, `
			detach eni-1: surplus-eni`},
		{"whole prefixes", scene{"primary:AFFF", m5large, nil}, pd(1), 0, `
			unassign 10.0.3.0/28 10.0.2.0/28 from eni-0: surplus-prefixes`},
		{"scattered pods: as many prefixes stay free as asked", scene{"primary:AAAF", m5large, nil}, pd(1), 0, ""},
		{"WARM_PREFIX_TARGET=0 keeps the last free one", scene{"primary:FF", m5large, nil}, pd(0), 0, `
			unassign 10.0.1.0/28 from eni-0: surplus-prefixes`},
		{"prefixes of an empty ENI", scene{"primary:AF eni:FF", m5large, nil}, pd(1), 0, `
			detach eni-1: surplus-eni`},
		{"IP targets in prefix mode", scene{"primary:AFFF", m5large, nil}, Policy{PrefixDelegation: true, WarmIP: 16, MinIP: 33, WarmPrefix: 9}, 0, `
			unassign 10.0.3.0/28 from eni-0: surplus-prefixes`},
		{"cooling addresses stay, and are not counted on", scene{"primary:accff", m5large, nil}, ip(1, 0), 0, `
			unassign 10.0.0.4 from eni-0: surplus-ips
			wait 20.000000001s: addresses-cooling`},
		{"so does a prefix with one", scene{"primary:ACF", m5large, nil}, pd(0), 0, `
			unassign 10.0.2.0/28 from eni-0: surplus-prefixes
			wait 20.000000001s: addresses-cooling`},
		{"and an ENI", scene{"primary:afffffffff eni:cffffffff", Limits{11, []int{5}}, nil}, e(0), 0, `
			wait 20.000000001s: addresses-cooling`},
		{"held ones are gone already", scene{"primary:ahhf", m5large, pending(Pending{Kind: PendingRelease, ENI: "eni-0"})}, ip(1, 0), 0, ""},
		{"a held address keeps its ENI", scene{"primary:aff eni:hf", m5large, nil}, ip(1, 0), 0, `
			unassign 10.1.0.1 from eni-1: surplus-ips
			unassign 10.0.0.2 from eni-0: surplus-ips`},
		{"one operation per ENI", scene{"primary:ahfff eni:aff", m5large, pending(Pending{Kind: PendingRelease, ENI: "eni-0"})}, ip(1, 0), 0, `
			unassign 10.1.0.2 10.1.0.1 from eni-1: surplus-ips`},
		{"nothing while an assignment has no place", scene{"primary:afff eni:ff excluded:ff", m5large, unplaced}, ip(1, 0), 0, ""},
		{"nothing while pods wait", scene{"primary:afff eni:ff", m5large, waiting(1)}, ip(1, 0), 0, ""},
	})
}

func TestPlan_Clean(t *testing.T) {
	t.Parallel()
	pd := Policy{PrefixDelegation: true, WarmPrefix: 1}
	justShrunk := func(s *Snapshot) { s.LastScaleDown = epoch }
	runPlans(t, []planRow{
		{"an empty excluded ENI", scene{"primary:fffffffff excluded:ff", m5large, nil}, e(1), 0, `
			detach eni-1: eni-excluded`},
		{"an excluded ENI with pods gives back the rest", scene{"primary:fffffffff excluded:afF", m5large, nil}, e(1), 0, `
			unassign 10.1.0.1 from eni-1: eni-excluded`},
		{"one of a further card", scene{"primary:fffffffff excluded@1:ff eni@1:f", Limits{10, []int{3, 2}}, nil}, e(1).with(func(p *Policy) { p.MultiNIC = true }), 0, `
			detach eni-1: eni-excluded`},
		{"one of a further card, with pods", scene{"primary:fffffffff excluded@1:af eni@1:f", Limits{10, []int{3, 2}}, nil}, e(1).with(func(p *Policy) { p.MultiNIC = true }), 0, `
			unassign 10.1.0.1 from eni-1: eni-excluded`},
		{"one kind after the other", scene{"primary:fffffffff excluded:aF", m5large, nil}, e(1), 0, `
			unassign 10.1.1.0/28 from eni-1: eni-excluded`},
		{"its cooling addresses stay", scene{"primary:fffffffff excluded:c", m5large, nil}, e(1), 0, `
			wait 20.000000001s: addresses-cooling`},
		{"an excluded primary stays, its addresses go", scene{"primary:ff eni:fffffffff", m5large, func(s *Snapshot) { s.Book.ENIs[0].Excluded = true }}, e(1), 0, `
			unassign 10.0.0.1 10.0.0.0 from eni-0: eni-excluded`},
		{"custom networking: the primary's stay", scene{"primary:aff eni:fffffffff", m5large, nil}, e(1).with(custom), 0, ""},
		{"custom networking: and so do its prefixes", scene{"primary:FF eni:A", m5large, nil}, prefix(0, 1, 1, 110).with(custom), 0, ""},
		{"custom networking: of either kind, excluded or not", scene{"primary:FFff eni:A", m5large, func(s *Snapshot) { s.Book.ENIs[0].Excluded = true }}, prefix(0, 1, 1, 110).with(custom), 0, ""},
		{"custom networking: those of the other ENIs go", scene{"primary:ff eni:Aff", m5large, nil}, prefix(0, 1, 1, 110).with(custom), 0, `
			unassign 10.1.0.2 10.1.0.1 from eni-1: mode-changed`},
		{"secondary IPs after the switch to prefixes", scene{"primary:aAFff", m5large, nil}, pd, 0, `
			unassign 10.0.0.4 10.0.0.3 from eni-0: mode-changed`},
		{"prefixes after the switch back", scene{"primary:ffffffAFA", m5large, nil}, ip(6, 0), 0, `
			unassign 10.0.7.0/28 from eni-0: mode-changed`},
		{"their slots come first, no ENI is attached for want of them", scene{"primary:fffffffff", m5large, nil}, pd, 0, `
			unassign 10.0.0.8 10.0.0.7 10.0.0.6 10.0.0.5 10.0.0.4 10.0.0.3 10.0.0.2 10.0.0.1 10.0.0.0 from eni-0: mode-changed`},
		{"cleaning does not wait for the spacing", scene{"primary:fffffffff excluded:ff", m5large, justShrunk}, e(1), 0, `
			detach eni-1: eni-excluded`},
		{"nor for the pool to be full", scene{"primary:aaa eni:aaa excluded:ff", t3small, waiting(1)}, ip(1, 0), 0, `
			detach eni-2: eni-excluded`},
	})
}

// Each timer, just before and after its time.
func TestPlan_Timers(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	shrunk := func(s *Snapshot) { s.LastScaleDown = epoch }
	young := func(s *Snapshot) { s.Book.ENIs[1].AttachedAt = epoch }
	cool := func(s *Snapshot) { s.Book.ENIs[0].CIDRs[1].Records[0].UnassignedAt = epoch }
	slowENI := func(s *Snapshot) { s.ENIBackoff["eni-0"] = after(5 * time.Second) }
	slowAttach := func(s *Snapshot) { s.AttachBackoff = after(5 * time.Second) }
	slowRelease := func(s *Snapshot) { s.ReleaseBackoff = after(5 * time.Second) }
	slowSubnet := subnetList(Subnet{ID: "a", AvailableIPs: 99, BackoffUntil: after(2 * time.Minute)})
	fragmentedSubnet := subnetList(Subnet{ID: "a", AvailableIPs: 99, PrefixBackoff: after(2 * time.Minute)})
	pd := Policy{PrefixDelegation: true, WarmPrefix: 1}
	runPlans(t, []planRow{
		{"scale-down spacing 29.999 s", scene{"primary:aff", m5large, shrunk}, ip(1, 0), 29999 * ms, `
			wait 30s: scale-down-spacing`},
		{"scale-down spacing 30 s", scene{"primary:aff", m5large, shrunk}, ip(1, 0), 30 * time.Second, `
			unassign 10.0.0.2 from eni-0: surplus-ips`},
		{"ENI age 59.999 s", scene{"primary:af eni:ff", m5large, young}, ip(1, 0), 59999 * ms, `
			wait 1m0s: eni-too-young`},
		{"ENI age 60 s", scene{"primary:af eni:ff", m5large, young}, ip(1, 0), 60 * time.Second, `
			detach eni-1: surplus-eni`},
		{"a young ENI is waited for, nothing else is drained for it", scene{"primary:aff eni:ff", m5large, young}, ip(2, 0), time.Second, `
			wait 1m0s: eni-too-young`},
		{"nor is it drained itself", scene{"primary:afff eni:ff", m5large, young}, ip(2, 0), time.Second, `
			unassign 10.0.0.3 from eni-0: surplus-ips
			wait 1m0s: eni-too-young`},
		{"excluded ENI age 59.999 s", scene{"primary:af excluded:ff", m5large, young}, ip(1, 0), 59999 * ms, `
			wait 1m0s: eni-too-young`},
		{"cooldown 30 s", scene{"primary:acf", m5large, cool}, ip(1, 0), 30 * time.Second, `
			wait 30.000000001s: addresses-cooling`},
		{"cooldown 30 s and a bit", scene{"primary:acf", m5large, cool}, ip(1, 0), 30*time.Second + 1, `
			unassign 10.0.0.2 from eni-0: surplus-ips`},
		{"cooldown 30 s for growth", scene{"primary:ac", m5large, cool}, ip(1, 0), 30 * time.Second, `
			assign 1 secondary IP to eni-0: warm-ip-target`},
		{"cooldown 30 s and a bit for growth", scene{"primary:ac", m5large, cool}, ip(1, 0), 30*time.Second + 1, ""},
		{"the end of a cooldown is waited for when nothing else helps", scene{"primary:acc", Limits{4, []int{1}}, both(cool, waiting(1))}, ip(1, 0), 15 * time.Second, `
			wait 20.000000001s: addresses-cooling`},
		{"ENI back-off 4.999 s", scene{"primary:a", Limits{10, []int{1}}, slowENI}, ip(1, 0), 4999 * ms, `
			wait 5s: eni-backed-off`},
		{"ENI back-off 5 s", scene{"primary:a", Limits{10, []int{1}}, slowENI}, ip(1, 0), 5 * time.Second, `
			assign 1 secondary IP to eni-0: warm-ip-target`},
		{"another ENI goes on meanwhile", scene{"primary:a eni:a", m5large, slowENI}, ip(1, 0), 0, `
			assign 1 secondary IP to eni-1: warm-ip-target`},
		{"attach back-off 4.999 s", scene{"primary:aaa", t3small, slowAttach}, ip(1, 0), 4999 * ms, `
			wait 5s: attach-backed-off`},
		{"attach back-off 5 s", scene{"primary:aaa", t3small, slowAttach}, ip(1, 0), 5 * time.Second, `
			attach an ENI at card 0 device 1 with 1 secondary IP: warm-ip-target`},
		{"release back-off 4.999 s", scene{"primary:aff", m5large, slowRelease}, ip(1, 0), 4999 * ms, `
			wait 5s: release-backed-off`},
		{"release back-off 5 s", scene{"primary:aff", m5large, slowRelease}, ip(1, 0), 5 * time.Second, `
			unassign 10.0.0.2 from eni-0: surplus-ips`},
		{"it holds cleaning back as well", scene{"primary:af excluded:f", m5large, slowRelease}, ip(1, 0), 0, `
			wait 5s: release-backed-off`},
		{"subnet back-off 119.999 s", scene{"primary:aaa", t3small, slowSubnet}, ip(1, 0), 119999 * ms, `
			wait 2m0s: subnet-exhausted`},
		{"subnet back-off 120 s", scene{"primary:aaa", t3small, slowSubnet}, ip(1, 0), 120 * time.Second, `
			attach an ENI in a at card 0 device 1 with 1 secondary IP: warm-ip-target`},
		{"fragmented 119.999 s", scene{"primary:", t3small, fragmentedSubnet}, pd, 119999 * ms, `
			wait 2m0s: subnet-fragmented`},
		{"fragmented 120 s", scene{"primary:", t3small, fragmentedSubnet}, pd, 120 * time.Second, `
			assign 1 prefix to eni-0: warm-prefix-target`},
		{"the earliest of several waits", scene{"primary:aaa", t3small, both(slowAttach, slowENI, cool)}, ip(1, 0), 0, `
			wait 5s: attach-backed-off`},
		{"growth does not wait for the spacing", scene{"primary:a", m5large, shrunk}, ip(1, 0), time.Second, `
			assign 1 secondary IP to eni-0: warm-ip-target`},
	})
}
