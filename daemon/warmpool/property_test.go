package warmpool

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

var asValues = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})}

// judge checks a plan against all invariants. It does its own counting instead of using the
// planner's.
type judge struct {
	t    *testing.T
	s    Snapshot
	p    Policy
	now  time.Time
	plan []Action

	touched map[ipam.ENIID]bool
	devices map[[2]int]bool
	enis    map[int]int    // attached per card, including planned ones
	adds    map[int]int    // addresses planned per card
	drawn   map[string]int // addresses planned per subnet
	out     map[int]int    // free addresses released per card
	tried   map[int]bool   // cards on which more is requested than EC2 said that an ENI takes
}

func (j *judge) fail(format string, args ...any) {
	j.t.Helper()
	j.t.Errorf("%s\nplan: %+v\npolicy: %+v\nsnapshot: %+v", fmt.Sprintf(format, args...), j.plan, j.p, j.s)
}

func (j *judge) judge() {
	j.t.Helper()
	j.touched, j.devices, j.tried = map[ipam.ENIID]bool{}, map[[2]int]bool{}, map[int]bool{}
	j.enis, j.adds, j.drawn, j.out = map[int]int{}, map[int]int{}, map[string]int{}, map[int]int{}
	if j.s.Terminating && len(j.plan) > 0 {
		j.fail("plans while terminating")
	}
	for _, e := range j.s.Book.ENIs {
		j.enis[e.Card]++
		j.devices[[2]int{e.Card, e.Device}] = true
	}
	for card, others := range j.s.OtherENIs {
		j.enis[card] += others
	}
	for card, list := range j.s.OtherDevices {
		for _, d := range list {
			j.devices[[2]int{card, d}] = true
		}
	}
	for _, op := range j.s.Pending {
		if op.Kind == PendingAttach {
			j.enis[op.Card]++
			j.devices[[2]int{op.Card, op.Device}] = true
		}
	}
	for i, a := range j.plan {
		if a.Why().Title() == "" {
			j.fail("reason %q has no title", a.Why())
		}
		j.action(i, a)
	}
	j.totals()
}

func (j *judge) action(i int, a Action) {
	j.t.Helper()
	switch a := a.(type) {
	case AttachENI:
		j.attach(a)
	case AssignAddresses:
		j.assign(a.ENI, a.Count, false)
	case AssignPrefixes:
		j.assign(a.ENI, a.Count, true)
	case UnassignAddresses:
		j.unassign(a.ENI, a.CIDRs, false, a.Reason)
	case UnassignPrefixes:
		j.unassign(a.ENI, a.CIDRs, true, a.Reason)
	case DetachENI:
		j.detach(a)
	case Wait:
		if i != len(j.plan)-1 || !a.Until.After(j.now) {
			j.fail("wait %d of %d until %s (now %s)", i+1, len(j.plan), a.Until, j.now)
		}
	default:
		j.fail("unknown action %T", a)
	}
}

// touch returns an action's ENI, and checks that a plan touches each ENI once.
func (j *judge) touch(id ipam.ENIID) ipam.ENIState {
	j.t.Helper()
	if j.touched[id] {
		j.fail("two actions on %s", id)
	}
	j.touched[id] = true
	for _, op := range j.s.Pending {
		if op.ENI == id {
			j.fail("action on %s, which has an operation in flight", id)
		}
	}
	for _, e := range j.s.Book.ENIs {
		if e.ID != id {
			continue
		}
		if e.Held {
			j.fail("action on the held %s", id)
		}
		if e.Quarantined() {
			j.fail("action on the quarantined %s", id)
		}
		if e.Card > 0 && !j.p.MultiNIC || at(j.s.Unmanaged, e.Card) {
			j.fail("action on %s, whose card has no pool", id)
		}
		return e
	}
	j.fail("action on unknown ENI %q", id)
	return ipam.ENIState{}
}

func (j *judge) serves(e ipam.ENIState) bool {
	return !e.Held && !e.Quarantined() && !e.Excluded && !(j.p.CustomNetworking && e.Primary)
}

func (j *judge) unit() int { return unitOf(j.p) }

func unitOf(p Policy) int {
	switch {
	case p.IPv6:
		return 1 << 48
	case p.PrefixDelegation:
		return 16
	}
	return 1
}

// fromSubnet returns the number of IPv4 addresses that a CIDR takes.
func (j *judge) fromSubnet() int {
	if j.p.IPv6 {
		return 0
	}
	return j.unit()
}

// active reports whether pods get addresses from the CIDR.
func (j *judge) active(c ipam.CIDRState) bool {
	return c.IsPrefix() == j.p.PrefixDelegation && c.Prefix.Addr().Is4() != j.p.IPv6
}

// slots returns the number of CIDRs that an ENI may hold.
func (j *judge) slots() int {
	if j.p.IPv6 {
		return 1
	}
	return j.s.Limits.IPv4PerENI - 1
}

// held counts the used slots of an ENI, including misplaced CIDRs: those of another family
// are not counted, and a /80 that EC2 does not show delays no pod.
func (j *judge) held(e ipam.ENIState) int {
	n := j.s.Misplaced[e.ID]
	for _, c := range e.CIDRs {
		if j.p.IPv6 && c.Quarantined() && at(j.s.Waiting, e.Card) > 0 {
			continue
		}
		if !j.p.IPv6 && c.Prefix.Addr().Is4() || j.active(c) {
			n++
		}
	}
	return n
}

func (j *judge) attach(a AttachENI) {
	j.t.Helper()
	place := [2]int{a.Card, a.Device}
	if j.devices[place] {
		j.fail("device %v is taken", place)
	}
	j.devices[place] = true
	j.enis[a.Card]++
	n := a.IPs + a.Prefixes
	if n < 1 || n > j.slots() || (a.Prefixes > 0) != j.p.PrefixDelegation || a.IPs > 0 && a.Prefixes > 0 {
		j.fail("%+v: wrong count", a)
	}
	j.adds[a.Card] += n * j.unit()
	if j.s.AttachBackoff.After(j.now) || j.s.NoUsableSubnet {
		j.fail("%+v: no ENI may be attached", a)
	}
	if a.Card > 0 && !j.p.MultiNIC || at(j.s.Unmanaged, a.Card) {
		j.fail("%+v: the card has no pool", a)
	}
	if (a.SubnetID == "") != (len(j.s.Subnets) == 0) {
		j.fail("%+v: subnet", a)
	}
	j.draw(a.SubnetID, 1+n*j.fromSubnet())
	if j.p.IPv6 {
		j.alone(a)
	}
}

// alone checks that an ENI of an IPv6 cluster is attached only if no other ENI can or will
// hold a /80 for pods.
func (j *judge) alone(a AttachENI) {
	j.t.Helper()
	for _, e := range j.s.Book.ENIs {
		if e.Card == a.Card && j.serves(e) && (!e.Trunk || slices.ContainsFunc(e.CIDRs, func(c ipam.CIDRState) bool {
			return j.active(c) && !c.Held && !c.Quarantined()
		})) {
			j.fail("%+v beside %s", a, e.ID)
		}
	}
	for _, op := range j.s.Pending {
		if op.Kind == PendingAttach && op.Card == a.Card {
			j.fail("%+v beside %+v", a, op)
		}
	}
	if j.adds[a.Card] > prefixSize6 {
		j.fail("%+v beside another", a)
	}
}

func (j *judge) draw(subnet string, addresses int) {
	j.t.Helper()
	for _, s := range j.s.Subnets {
		if s.ID != subnet {
			continue
		}
		j.drawn[subnet] += addresses
		if s.BackoffUntil.After(j.now) || j.p.PrefixDelegation && s.PrefixBackoff.After(j.now) ||
			s.AvailableIPs >= 0 && j.drawn[subnet] > s.AvailableIPs && addresses > 0 {
			j.fail("%d addresses of subnet %+v", j.drawn[subnet], s)
		}
	}
}

func (j *judge) assign(id ipam.ENIID, n int, prefixes bool) {
	j.t.Helper()
	e := j.touch(id)
	if n < 1 || j.held(e)+n > j.slots() && !j.tries(e, n) {
		j.fail("%d more on %s with %d CIDRs", n, id, len(e.CIDRs))
	}
	if !j.serves(e) || e.Trunk || prefixes != j.p.PrefixDelegation || j.s.ENIBackoff[id].After(j.now) {
		j.fail("nothing may be assigned to %s", id)
	}
	j.adds[e.Card] += n * j.unit()
	j.draw(e.SubnetID, n*j.fromSubnet())
}

// tries reports whether a request may be the one that tries a stated limit again.
func (j *judge) tries(e ipam.ENIState, n int) bool {
	st := j.s.Stated.Slots
	if !st.There() || j.now.Before(st.Retry) || n != 1 || j.held(e) != st.Most || j.tried[e.Card] {
		return false
	}
	j.tried[e.Card] = true
	return true
}

func (j *judge) mayRelease(why Reason) {
	j.t.Helper()
	if len(j.s.Book.Unplaced) > 0 || j.s.Unschedulable && !j.p.ManageUnschedulable || j.s.ReleaseBackoff.After(j.now) {
		j.fail("nothing may be released")
	}
	surplus := slices.Contains([]Reason{SurplusIPs, SurplusPrefixes, SurplusENI}, why)
	if surplus && !j.s.LastScaleDown.IsZero() && j.now.Sub(j.s.LastScaleDown) < j.p.ScaleDownInterval {
		j.fail("scales down %s after the last time", j.now.Sub(j.s.LastScaleDown))
	}
}

func (j *judge) unassign(id ipam.ENIID, cidrs []netip.Prefix, prefixes bool, why Reason) {
	j.t.Helper()
	e := j.touch(id)
	j.mayRelease(why)
	if len(cidrs) == 0 {
		j.fail("releases nothing from %s", id)
	}
	seen := map[netip.Prefix]bool{}
	for _, p := range cidrs {
		i := slices.IndexFunc(e.CIDRs, func(c ipam.CIDRState) bool { return c.Prefix == p })
		if i < 0 || seen[p] || p.IsSingleIP() == prefixes {
			j.fail("releases %s from %s", p, id)
			continue
		}
		seen[p] = true
		j.unused(e, e.CIDRs[i])
		if prefixes != j.p.PrefixDelegation && j.serves(e) && why != ModeChanged {
			j.fail("%s goes because of %s", p, why)
		}
	}
}

// unused checks that a CIDR may be released, and counts its free addresses.
func (j *judge) unused(e ipam.ENIState, c ipam.CIDRState) {
	j.t.Helper()
	if c.Held || c.Quarantined() || c.Assigned > 0 {
		j.fail("%s is in use, held or quarantined", c.Prefix)
	}
	for _, r := range c.Records {
		if r.Assigned() || r.Cooling(j.now, j.p.Cooldown) {
			j.fail("%s has %s assigned or cooling", c.Prefix, r.Address)
		}
	}
	if e.Primary && j.p.CustomNetworking || c.Prefix.Addr().Is4() == j.p.IPv6 {
		j.fail("%s is not the pool's to give back", c.Prefix)
	}
	if j.serves(e) && j.active(c) {
		j.out[e.Card] += j.unit()
	}
}

func (j *judge) detach(a DetachENI) {
	j.t.Helper()
	e := j.touch(a.ENI)
	j.mayRelease(a.Reason)
	if e.Primary || e.Trunk || e.EFA || j.p.IPv6 || j.now.Sub(e.AttachedAt) < j.p.ENIMinAge {
		j.fail("%s may not be detached", a.ENI)
	}
	for _, c := range e.CIDRs {
		j.unused(e, c)
	}
}

// naive adds up one card the slow way.
func (j *judge) naive(card int) (total, free, cooling, pending int) {
	for _, e := range j.s.Book.ENIs {
		if e.Card != card || !j.serves(e) {
			continue
		}
		for _, c := range e.CIDRs {
			if c.Held || c.Quarantined() || !j.active(c) {
				continue
			}
			total += j.unit()
			free += j.unit()
			for _, r := range c.Records {
				if r.Assigned() || r.Cooling(j.now, j.p.Cooldown) {
					free--
				}
				if !r.Assigned() && r.Cooling(j.now, j.p.Cooldown) {
					cooling++
				}
			}
		}
		for _, op := range j.s.Pending {
			if op.Kind == PendingAssign && op.ENI == e.ID {
				pending += incoming(op, j.p)
			}
		}
	}
	for _, op := range j.s.Pending {
		if op.Kind == PendingAttach && op.Card == card {
			pending += incoming(op, j.p)
		}
	}
	return total, free, cooling, pending
}

// roof returns the limit on usable addresses for growth on a card.
func (j *judge) roof(card, before int) int {
	p := j.p
	if card == 0 && p.WarmIP == 0 && p.MinIP == 0 && !p.PrefixDelegation {
		roof := p.MaxPods
		if p.WarmENI > 0 {
			roof += (p.MaxPods + 19) / 20
		}
		if before < p.MaxPods && (!j.s.Unschedulable || p.ManageUnschedulable) {
			roof = max(roof, p.MaxPods-1+j.slots()) // a whole ENI
		}
		return roof
	}
	roof := (p.MaxPods + j.unit() - 1) / j.unit() * j.unit()
	if p.PrefixDelegation {
		roof += 15 // totals that are not multiples of 16 round up within the step
	}
	return roof
}

func incoming(op Pending, p Policy) int {
	if p.PrefixDelegation {
		return unitOf(p) * op.Prefixes
	}
	return op.IPs
}

func (j *judge) totals() {
	j.t.Helper()
	planned := map[int]int{}
	for _, a := range j.plan {
		if a, ok := a.(AttachENI); ok {
			planned[a.Card]++
		}
	}
	for card, most := range j.s.Limits.ENIsByCard {
		if j.p.MaxENI > 0 {
			most = min(most, j.p.MaxENI)
		}
		stated := j.s.Stated.Card(card)
		tries := stated.There() && !j.now.Before(stated.Retry) && j.enis[card] <= stated.Most+1
		if tries {
			if most = stated.OfType; j.p.MaxENI > 0 {
				most = min(most, j.p.MaxENI)
			}
		}
		trunk := slices.ContainsFunc(j.s.Book.ENIs, func(e ipam.ENIState) bool { return e.Card == 0 && e.Trunk })
		if card == 0 && j.p.ReserveTrunkSlot && !trunk {
			most--
		}
		if planned[card] > 0 && j.enis[card] > most {
			j.fail("%d ENIs on card %d, at most %d may be", j.enis[card], card, most)
		}
		total, free, cooling, pending := j.naive(card)
		before := total - cooling + pending
		if j.adds[card] > 0 && j.p.MaxPods > 0 && !j.p.IPv6 && before+j.adds[card] > j.roof(card, before) {
			j.fail("card %d gets %d addresses on top of %d, max-pods is %d", card, j.adds[card], before, j.p.MaxPods)
		}
		if j.out[card] > 0 {
			j.shrunk(card, total, free)
		}
		j.served(card, free, pending)
	}
}

// shrunk checks the state after a scale-down.
func (j *judge) shrunk(card, total, free int) {
	j.t.Helper()
	if j.adds[card] > 0 || at(j.s.Waiting, card) > 0 {
		j.fail("card %d grows or has waiting pods, and shrinks", card)
	}
	total, free = total-j.out[card], free-j.out[card]
	if wait := at(j.s.Expected, card); wait > 0 && j.p.MaxPods == 0 && free < wait {
		j.fail("%d free are left, %d pods are expected", free, wait)
	}
	switch {
	case j.p.IPv6:
		j.fail("an IPv6 pool shrinks")
	case free < 1:
		j.fail("card %d: nothing is left free", card)
	case card > 0:
	case j.p.WarmIP > 0 || j.p.MinIP > 0:
		if free < j.p.WarmIP || total < j.p.MinIP {
			j.fail("%d free of %d are left", free, total)
		}
	case j.p.PrefixDelegation:
		if free < 16*j.p.WarmPrefix {
			j.fail("%d free are left", free)
		}
	case free < j.p.WarmENI*(j.s.Limits.IPv4PerENI-1):
		j.fail("%d free are left", free)
	}
}

// served checks that waiting pods are not forgotten: the addresses they need are free, in
// flight or planned, or there is a cause why not.
func (j *judge) served(card, free, pending int) {
	j.t.Helper()
	w := at(j.s.Waiting, card)
	if j.s.Terminating || w <= free+pending+j.adds[card] || card > 0 && !j.p.MultiNIC {
		return
	}
	if j.adds[card] > 0 || pending > 0 || free > 0 {
		return // partly served: the next plan continues
	}
	code, text, blocked := Blocked(j.s, j.p, j.now, card)
	if blocked && (code.Title() == "" || text == "") {
		j.fail("cause %q, text %q", code, text)
	}
	busy := slices.ContainsFunc(j.s.Book.ENIs, func(e ipam.ENIState) bool {
		return e.Card == card && (j.touched[e.ID] || slices.ContainsFunc(j.s.Pending, func(op Pending) bool { return op.ENI == e.ID }))
	})
	busy = busy || slices.ContainsFunc(j.s.Pending, func(op Pending) bool {
		return op.Kind == PendingAttach && op.Card == card && (j.p.IPv6 || op.IPs+op.Prefixes < j.s.Limits.IPv4PerENI-1)
	})
	waits := false
	for _, a := range j.plan {
		_, wait := a.(Wait)
		waits = waits || wait
	}
	if !blocked && !busy && !waits {
		j.fail("%d pods wait on card %d, nothing is planned, and nothing is in the way", w, card)
	}
}

func (j *judge) again() {
	j.t.Helper()
	s := j.s
	s.Subnets, s.Pending = slices.Clone(s.Subnets), slices.Clone(s.Pending)
	slices.Reverse(s.Subnets)
	slices.Reverse(s.Pending)
	if diff := cmp.Diff(j.plan, Plan(s, j.p, j.now), asValues); diff != "" {
		j.fail("another plan for the same snapshot:\n%s", diff)
	}
}

func TestPlan_Properties(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for seed := range uint64(5000) {
		d := seeded(seed)
		n := randomNode(t, d)
		s := randomSnapshot(d, n)
		before := ""
		if seed%50 == 0 {
			before = fmt.Sprintf("%+v", s)
		}
		j := &judge{t: t, s: s, p: n.policy, now: n.now, plan: Plan(s, n.policy, n.now)}
		j.judge()
		j.again()
		if before != "" && fmt.Sprintf("%+v", s) != before {
			j.fail("the snapshot was changed, it was %s", before)
		}
		for card := range s.Limits.ENIsByCard {
			if code, _, blocked := Blocked(s, n.policy, n.now, card); blocked {
				counts[string(code)]++
			}
		}
		for _, a := range j.plan {
			counts[fmt.Sprintf("%T %s", a, a.Why())]++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	reached(t, counts)
}

// reached checks that the random snapshots cover every reason and cause.
func reached(t *testing.T, counts map[string]int) {
	t.Helper()
	for _, r := range Reasons() {
		n := 0
		for k, v := range counts {
			if len(k) > len(r) && k[len(k)-len(r)-1:] == " "+string(r) {
				n += v
			}
		}
		if n == 0 {
			t.Errorf("no plan had reason %s", r)
		}
	}
	for _, c := range []cause.Code{cause.PoolFull, cause.SubnetExhausted, cause.SubnetFragmented, cause.NoUsableSubnet,
		cause.EC2Throttled, cause.EC2Error, cause.AddressesCooling, cause.DaemonTerminating, cause.MultiNICDisabled} {
		if counts[string(c)] == 0 {
			t.Errorf("no snapshot was blocked by %s", c)
		}
	}
}

// Whatever state a pool starts in and whatever pods do, it comes to rest: few plans at one
// time, and no more plans once the pods no longer change.
func TestPlan_Converges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(600) {
		d := seeded(seed)
		n := randomNode(t, d)
		n.act()
		for range d(40) {
			card := 0
			if n.policy.MultiNIC {
				card = d(len(n.limits.ENIsByCard))
			}
			switch {
			case len(n.pods) > 0 && d.one(3):
				n.stop(n.pods[d(len(n.pods))])
			case !n.add(card):
				if _, _, blocked := Blocked(n.snapshot(), n.policy, n.now, card); !blocked {
					t.Fatalf("seed %d: a pod got no address and nothing is in the way\n%s", seed, n.history())
				}
			}
			n.now = n.now.Add(time.Duration(d(20)) * time.Second)
			n.act()
		}
		n.settle()
		n.rest()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{8, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 0, 1, 1, 0, 7})
	f.Add([]byte{3, 2, 1, 4, 2, 3, 1, 1, 1, 1, 1, 1, 7, 1, 29, 3, 2, 2, 2, 39, 1, 1, 1, 1, 7, 7, 7, 119, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fromBytes(data)
		n := randomNode(t, d)
		s := randomSnapshot(d, n)
		j := &judge{t: t, s: s, p: n.policy, now: n.now, plan: Plan(s, n.policy, n.now)}
		j.judge()
		j.again()
		for card := -1; card <= len(s.Limits.ENIsByCard); card++ {
			Blocked(s, n.policy, n.now, card)
		}
	})
}
