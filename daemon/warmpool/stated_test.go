package warmpool

import (
	"testing"
	"time"

	"cnictl/daemon/api/cause"
)

// enisStated lets EC2 refuse more than that many ENIs on card 0.
func enisStated(most int, ago time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Stated, _ = s.Stated.ENIRefused(s.Limits, 0, most, epoch.Add(-ago))
		s.Limits = s.Stated.Lower(s.Limits)
	}
}

// slotsStated lets EC2 refuse more than that many CIDRs on an ENI.
func slotsStated(most int, ago time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Stated, _ = s.Stated.SlotsRefused(s.Limits, most, epoch.Add(-ago))
		s.Limits = s.Stated.Lower(s.Limits)
	}
}

func TestPlan_StatedLimits(t *testing.T) {
	t.Parallel()
	pd := Policy{PrefixDelegation: true, WarmPrefix: 1}
	four := Limits{4, []int{4}}
	almost, hour := StatedLimitRetry-time.Millisecond, StatedLimitRetry
	runPlans(t, []planRow{
		{"believed", scene{"primary:aaa eni:aaa", four, both(enisStated(2, 0), waiting(2))}, e(1), 0, "wait 1h0m0s: eni-limit-stated"},
		{"believed for an hour", scene{"primary:aaa eni:aaa", four, both(enisStated(2, almost), waiting(2))}, e(1), 0, "wait 1ms: eni-limit-stated"},
		{"then one more is tried, not two", scene{"primary:aaa eni:aaa", four, both(enisStated(2, hour), waiting(6))}, e(1), 0,
			"attach an ENI at card 0 device 2 with 3 secondary IPs: waiting-pods"},
		{"while it is tried, no other", scene{"primary:aaa eni:aaa", four, both(enisStated(2, hour), waiting(6),
			pending(Pending{Kind: PendingAttach, Device: 2, IPs: 3}))}, e(1), 0, ""},
		{"nothing wanted, nothing tried", scene{"primary:aff eni:fff", four, enisStated(2, hour)}, e(1), 0, ""},
		{"slots below it are used", scene{"primary:aaa", four, both(enisStated(2, 0), waiting(6))}, e(1), 0, `
			attach an ENI at card 0 device 1 with 3 secondary IPs: waiting-pods
			wait 1h0m0s: eni-limit-stated`},
		{"ENIs of others count", scene{"primary:aaa", four, both(enisStated(2, 0), waiting(1), func(s *Snapshot) { s.OtherENIs = []int{1} })}, e(1), 0,
			"wait 1h0m0s: eni-limit-stated"},
		{"MAX_ENI is not tried", scene{"primary:aaa eni:aaa", four, both(enisStated(2, hour), waiting(1))}, e(1).with(maxENI(2)), 0, ""},
		{"a trunk's slot is not tried", scene{"primary:aaa eni:aaa", Limits{4, []int{3}}, both(enisStated(2, hour), waiting(1))}, e(1).with(trunkSlot), 0, ""},
		{"beside a trunk's slot one is tried", scene{"primary:aaa eni:aaa", four, both(enisStated(2, hour), waiting(1))}, e(1).with(trunkSlot), 0,
			"attach an ENI at card 0 device 2 with 3 secondary IPs: waiting-pods"},
		{"each card has its own", scene{"primary:aaa eni@1:aaa", Limits{4, []int{4, 4}}, both(enisStated(1, 0), func(s *Snapshot) { s.Waiting = []int{1, 1} })},
			Policy{MultiNIC: true, WarmENI: 1}, 0, `
			attach an ENI at card 1 device 1 with 2 secondary IPs: waiting-pods
			wait 1h0m0s: eni-limit-stated`},

		{"addresses: believed", scene{"primary:aa", Limits{4, []int{1}}, both(slotsStated(2, 0), waiting(1))}, e(1), 0, "wait 1h0m0s: address-limit-stated"},
		{"addresses: other ENIs get as many", scene{"primary:aa", Limits{4, []int{2}}, both(slotsStated(2, 0), waiting(1))}, ip(1, 0), 0,
			"attach an ENI at card 0 device 1 with 2 secondary IPs: waiting-pods"},
		{"addresses: one more on one ENI, then other ENIs", scene{"primary:aa eni:aa", Limits{9, []int{3}}, both(slotsStated(2, hour), waiting(3))}, e(1), 0, `
			assign 1 secondary IP to eni-0: waiting-pods
			attach an ENI at card 0 device 2 with 2 secondary IPs: waiting-pods`},
		{"addresses: while one is tried, no other", scene{"primary:aa eni:aa", Limits{9, []int{2}}, both(slotsStated(2, hour), waiting(3),
			pending(Pending{Kind: PendingAssign, ENI: "eni-0", IPs: 1}))}, e(1), 0, ""},
		{"prefixes: believed", scene{"primary:AA", Limits{4, []int{1}}, both(slotsStated(2, 0), waiting(40))}, pd, 0, "wait 1h0m0s: address-limit-stated"},
		{"prefixes: one more", scene{"primary:AA", Limits{9, []int{1}}, both(slotsStated(2, hour), waiting(40))}, pd, 0, "assign 1 prefix to eni-0: waiting-pods"},
		{"an IPv6 pool believes in ENIs", scene{"excluded:", four, both(enisStated(1, 0), waiting(1))}, Policy{IPv6: true, PrefixDelegation: true}, 0, "wait 1h0m0s: eni-limit-stated"},
	})
}

// TestStatedLimits lets EC2 refuse and accept in turn.
func TestStatedLimits(t *testing.T) {
	t.Parallel()
	ofType := Limits{10, []int{4, 2}}
	at := func(m time.Duration) time.Time { return epoch.Add(m * time.Minute) }
	refused := func(s StatedLimits, attached int, now time.Time) StatedLimits {
		s, _ = s.ENIRefused(ofType, 0, attached, now)
		return s
	}
	first := refused(StatedLimits{}, 2, at(0))
	if s := first.Card(0); s != (Stated{Most: 2, OfType: 4, Since: at(0), Retry: at(60)}) {
		t.Errorf("after a refusal: %+v", s)
	}
	for _, row := range []struct {
		name string
		got  StatedLimits
		want Stated
	}{
		{"refused again", refused(first, 2, at(61)), Stated{2, 4, at(0), at(121)}},
		{"refused with less", refused(first, 1, at(61)), Stated{1, 4, at(0), at(121)}},
		{"refused with all that the type takes", refused(StatedLimits{}, 4, at(0)), Stated{}},
		{"refused with more than the type takes", refused(StatedLimits{}, 5, at(0)), Stated{}},
		{"seen with as many", first.ENIsSeen(0, 2, at(30)), first.Card(0)},
		{"something else attached one", first.ENIsSeen(0, 3, time.Time{}), Stated{3, 4, at(0), at(60)}},
		{"one was on its way", first.ENIsSeen(0, 3, at(-1)), Stated{3, 4, at(0), at(60)}},
		{"all that the type takes are there", first.ENIsSeen(0, 4, time.Time{}), Stated{}},
		{"accepted later", first.ENIsSeen(0, 3, at(61)), Stated{}},
		{"requested before the last refusal", refused(first, 2, at(61)).ENIsSeen(0, 3, at(60)), Stated{3, 4, at(0), at(121)}},
		{"another card", first.ENIsSeen(1, 2, at(61)), first.Card(0)},
	} {
		if s := row.got.Card(0); s != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, s, row.want)
		}
	}
	if s := first.Card(0); s.Most != 2 {
		t.Errorf("the value that others share was changed: %+v", s)
	}
	if got := first.Lower(ofType); got.ENIsByCard[0] != 2 || got.ENIsByCard[1] != 2 || got.IPv4PerENI != 10 || ofType.ENIsByCard[0] != 4 {
		t.Errorf("lowered: %+v, of %+v", got, ofType)
	}

	addresses, lower := StatedLimits{}.SlotsRefused(ofType, 5, at(0))
	if got := addresses.Lower(ofType); !lower || got.IPv4PerENI != 6 || got.Slots() != 5 {
		t.Errorf("addresses: %v, %+v", lower, got)
	}
	if s, lower := addresses.SlotsRefused(ofType, 9, at(1)); lower || s.Slots != addresses.Slots {
		t.Errorf("a full ENI states nothing: %+v", s)
	}
	if s, lower := addresses.SlotsRefused(ofType, 8, at(1)); !lower || s.Slots.Most != 5 || s.Slots.Retry != at(61) {
		t.Errorf("a larger request, sent before, is refused later: %v, %+v", lower, s.Slots)
	}
	if s := addresses.SlotsSeen(7, time.Time{}); s.Slots.Most != 7 {
		t.Errorf("an ENI holds more: %+v", s)
	}
	if s := addresses.SlotsSeen(6, at(61)); s.Any() {
		t.Errorf("accepted later: %+v", s)
	}
}

func TestBlocked_StatedLimits(t *testing.T) {
	t.Parallel()
	four := Limits{4, []int{4}}
	for _, row := range []struct {
		name  string
		scene scene
		code  cause.Code
		text  string
	}{
		{"ENIs", scene{"primary:aaa eni:aaa", four, enisStated(2, time.Minute)}, cause.ENIAttachLimit,
			"2 of 2 network interfaces are attached and hold all 6 addresses they can (EC2 refused to attach more, although the instance type takes 4, next attempt in 59m0s)"},
		{"an address is cooling", scene{"primary:aac eni:aaa", four, enisStated(2, time.Minute)}, cause.AddressesCooling,
			"2 of 2 network interfaces are attached and hold all 6 addresses they can (EC2 refused to attach more, although the instance type takes 4, next attempt in 59m0s); 1 of its 6 addresses are cooling, the first is free in 20s"},
		{"one more may be tried", scene{"primary:aaa eni:aaa", four, enisStated(2, StatedLimitRetry)}, "", ""},
		{"addresses", scene{"primary:aa", Limits{4, []int{1}}, slotsStated(2, time.Minute)}, cause.PoolFull,
			"1 of 1 network interfaces are attached and hold all 2 addresses they can (EC2 refused more than 2 on one, although the instance type takes 3, next attempt in 59m0s)"},
	} {
		code, text, _ := Blocked(row.scene.snapshot(t), timers(e(1)), epoch, 0)
		if code != row.code || text != row.text {
			t.Errorf("%s: %q %q\nwant %q %q", row.name, code, text, row.code, row.text)
		}
		if !AtENILimit(row.scene.snapshot(t), timers(e(1)), epoch, 0) && row.code != "" && row.code != cause.AddressesCooling {
			t.Errorf("%s: not at the ENI limit", row.name)
		}
	}
}

func TestUnmet_StatedLimits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		scene scene
		want  string
	}{
		{"ENIs", scene{"primary:aaa eni:aaa", Limits{4, []int{4}}, enisStated(2, 0)}, "WARM_IP_TARGET 0/3 stated-limit"},
		{"and once they may be tried", scene{"primary:aaa eni:aaa", Limits{4, []int{4}}, enisStated(2, StatedLimitRetry)}, "WARM_IP_TARGET 0/3 stated-limit"},
		{"addresses", scene{"primary:aa", Limits{4, []int{1}}, slotsStated(2, 0)}, "WARM_IP_TARGET 0/3 stated-limit"},
	} {
		if got := unmetText(Unmet(row.scene.snapshot(t), timers(Policy{WarmIP: 3}), epoch, 0)); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
