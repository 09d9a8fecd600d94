package ipam

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// model is a slow and obvious copy of the book: maps, and a search over every address for
// each decision. It is compared with the book after each event.
type model struct {
	cooldown time.Duration
	passes   int
	now      time.Time
	enis     map[ENIID]*modelENI
	cidrs    map[netip.Prefix]*modelCIDR
	addrs    map[netip.Addr]*modelAddr // placed records
	unplaced map[netip.Addr]*modelAddr
}

type modelENI struct {
	ENI
	held        bool
	quarantined time.Time
}

type modelCIDR struct {
	eni         ENIID
	held        bool
	quarantined time.Time
}

type modelAddr struct {
	sandbox    Sandbox
	pod        Pod
	assigned   time.Time
	unassigned time.Time
	passes     int
}

func newModel(cooldown time.Duration, passes int) *model {
	if cooldown <= 0 {
		passes = 0
	}
	return &model{
		cooldown: cooldown,
		passes:   passes,
		enis:     map[ENIID]*modelENI{},
		cidrs:    map[netip.Prefix]*modelCIDR{},
		addrs:    map[netip.Addr]*modelAddr{},
		unplaced: map[netip.Addr]*modelAddr{},
	}
}

func (m *model) cidrOf(a netip.Addr) (netip.Prefix, *modelCIDR) {
	for p, c := range m.cidrs {
		if p.Contains(a) {
			return p, c
		}
	}
	return netip.Prefix{}, nil
}

func (m *model) inUse(p netip.Prefix) bool {
	c := m.cidrs[p]
	return !c.held && !m.enis[c.eni].held
}

func (m *model) owner(s Sandbox) (netip.Addr, *modelAddr) {
	for _, all := range []map[netip.Addr]*modelAddr{m.addrs, m.unplaced} {
		for a, r := range all {
			if r.sandbox == s {
				return a, r
			}
		}
	}
	return netip.Addr{}, nil
}

// interfaces lists a sandbox's addresses on all cards.
func (m *model) interfaces(s Sandbox) []netip.Addr {
	var all []netip.Addr
	for s.Interface = range 10 {
		if a, r := m.owner(s); r != nil {
			all = append(all, a)
		}
	}
	return sorted(all)
}

func (m *model) assignedIn(p netip.Prefix) int {
	n := 0
	for a, r := range m.addrs {
		if p.Contains(a) && r.sandbox != (Sandbox{}) {
			n++
		}
	}
	return n
}

func (m *model) assignedOn(id ENIID) int {
	n := 0
	for p, c := range m.cidrs {
		if c.eni == id {
			n += m.assignedIn(p)
		}
	}
	return n
}

// candidate is the address that a CIDR gives next, with everything that ranks it.
type candidate struct {
	addr       netip.Addr
	eni        *modelENI
	onENI, in  int
	unassigned time.Time // zero: never used, or long ago
}

func (m *model) candidates(card int, k Kind, f Family) []candidate {
	var all []candidate
	for p, c := range m.cidrs {
		e := m.enis[c.eni]
		if e.Card != card || e.Excluded || !m.inUse(p) || !e.quarantined.IsZero() || !c.quarantined.IsZero() || p.IsSingleIP() != (k == SecondaryIPs) || p.Addr().Is4() != (f == IPv4) {
			continue
		}
		var used, fresh []candidate
		base := candidate{eni: e, onENI: m.assignedOn(c.eni), in: m.assignedIn(p)}
		a := p.Addr()
		for ; p.Contains(a) && (p.Bits() != 80 || len(fresh) == 0); a = a.Next() {
			if m.addrs[a] == nil {
				base.addr = a
				fresh = append(fresh, base)
			}
		}
		for a, r := range m.addrs {
			if p.Contains(a) && r.sandbox == (Sandbox{}) && !m.cooling(r) {
				x := base
				x.addr, x.unassigned = a, r.unassigned
				used = append(used, x)
			}
		}
		if p.Bits() == 80 && len(used) > 0 {
			fresh = nil
		}
		of := append(used, fresh...)
		if len(of) == 0 {
			continue
		}
		first := slices.MinFunc(of, func(x, y candidate) int { // never used: year 1
			if n := x.unassigned.Compare(y.unassigned); n != 0 {
				return n
			}
			return x.addr.Compare(y.addr)
		})
		if m.now.Sub(first.unassigned) >= freshAfter {
			first.unassigned = time.Time{}
		}
		all = append(all, first)
	}
	return all
}

func (m *model) cooling(r *modelAddr) bool {
	return m.cooldown > 0 && (r.passes > 0 || m.now.Sub(r.unassigned) <= m.cooldown)
}

// better implements the rule of the package comment for two addresses.
func better(x, y candidate) bool {
	if x.onENI != y.onENI {
		return x.onENI > y.onENI
	}
	if x.eni.ID != y.eni.ID {
		xp, yp := x.eni.Primary || x.eni.Trunk || x.eni.EFA, y.eni.Primary || y.eni.Trunk || y.eni.EFA
		if xp != yp {
			return xp
		}
	}
	if x.in != y.in {
		return x.in > y.in
	}
	if !x.unassigned.Equal(y.unassigned) {
		return x.unassigned.Before(y.unassigned)
	}
	if x.eni.ID != y.eni.ID {
		if x.eni.Device != y.eni.Device {
			return x.eni.Device < y.eni.Device
		}
		return x.eni.ID < y.eni.ID
	}
	return x.addr.Less(y.addr)
}

// apply returns the assigned and released addresses, in any order.
func (m *model) apply(now time.Time, ev Event) (assigned, released []netip.Addr, err error) {
	if now.After(m.now) {
		m.now = now
	}
	switch ev := ev.(type) {
	case AttachENI:
		if m.enis[ev.ENI.ID] != nil {
			return nil, nil, ErrDuplicate
		}
		m.enis[ev.ENI.ID] = &modelENI{ENI: ev.ENI}
		assigned, err = m.add(ev.ENI.ID, ev.CIDRs)
		if err != nil {
			delete(m.enis, ev.ENI.ID)
		}
		return assigned, nil, err
	case AddCIDRs:
		if m.enis[ev.ID] == nil {
			return nil, nil, ErrUnknownENI
		}
		assigned, err = m.add(ev.ID, ev.CIDRs)
		return assigned, nil, err
	case DetachENI:
		if m.enis[ev.ID] == nil {
			return nil, nil, ErrUnknownENI
		}
		if m.assignedOn(ev.ID) > 0 && !ev.Force {
			return nil, nil, ErrENIInUse
		}
		for p, c := range m.cidrs {
			if c.eni == ev.ID {
				released = append(released, m.drop(p)...)
			}
		}
		delete(m.enis, ev.ID)
	case SetExcluded:
		if m.enis[ev.ID] == nil {
			return nil, nil, ErrUnknownENI
		}
		m.enis[ev.ID].Excluded = ev.Excluded
	case HoldENI:
		if m.enis[ev.ID] == nil {
			return nil, nil, ErrUnknownENI
		}
		if m.assignedOn(ev.ID) > 0 {
			return nil, nil, ErrENIInUse
		}
		for _, c := range m.cidrs {
			if c.eni == ev.ID && !c.quarantined.IsZero() {
				return nil, nil, ErrQuarantined
			}
		}
		if !m.enis[ev.ID].quarantined.IsZero() {
			return nil, nil, ErrQuarantined
		}
		m.enis[ev.ID].held = true
	case UnholdENI:
		if m.enis[ev.ID] == nil {
			return nil, nil, ErrUnknownENI
		}
		m.enis[ev.ID].held = false
		assigned = m.place()
	case RemoveCIDRs:
		if err := m.check(ev.ID, ev.CIDRs, !ev.Force); err != nil {
			return nil, nil, err
		}
		for _, p := range ev.CIDRs {
			released = append(released, m.drop(p)...)
		}
	case HoldCIDRs:
		if err := m.check(ev.ID, ev.CIDRs, true); err != nil {
			return nil, nil, err
		}
		for _, p := range ev.CIDRs {
			if !m.cidrs[p].quarantined.IsZero() || !m.enis[ev.ID].quarantined.IsZero() {
				return nil, nil, ErrQuarantined
			}
		}
		for _, p := range ev.CIDRs {
			m.cidrs[p].held = true
		}
	case QuarantineCIDRs:
		if err := m.check(ev.ID, ev.CIDRs, false); err != nil {
			return nil, nil, err
		}
		for _, p := range ev.CIDRs {
			if m.cidrs[p].quarantined.IsZero() {
				m.cidrs[p].quarantined = m.now
			}
		}
	case UnquarantineCIDRs:
		if err := m.check(ev.ID, ev.CIDRs, false); err != nil {
			return nil, nil, err
		}
		for _, p := range ev.CIDRs {
			m.cidrs[p].quarantined = time.Time{}
		}
	case QuarantineENI:
		if m.enis[ev.ID] == nil {
			return nil, nil, ErrUnknownENI
		}
		if m.enis[ev.ID].quarantined.IsZero() {
			m.enis[ev.ID].quarantined = m.now
		}
	case UnquarantineENI:
		if m.enis[ev.ID] == nil {
			return nil, nil, ErrUnknownENI
		}
		m.enis[ev.ID].quarantined = time.Time{}
	case UnholdCIDRs:
		if err := m.check(ev.ID, ev.CIDRs, false); err != nil {
			return nil, nil, err
		}
		for _, p := range ev.CIDRs {
			m.cidrs[p].held = false
		}
		assigned = m.place()
	case Assign:
		if i := ev.Sandbox.Interface; i != 0 && i != ev.Card {
			return nil, nil, ErrInvalid
		}
		if a, r := m.owner(ev.Sandbox); r != nil {
			return []netip.Addr{a}, nil, nil
		}
		all := m.candidates(ev.Card, ev.Kind, ev.Family)
		if len(all) == 0 {
			return nil, nil, ErrNoAddress
		}
		best := all[0]
		for _, c := range all {
			if better(c, best) {
				best = c
			}
		}
		r := m.addrs[best.addr]
		if r == nil {
			r = &modelAddr{}
			m.addrs[best.addr] = r
		}
		r.sandbox, r.pod, r.assigned = ev.Sandbox, ev.Pod, m.now
		assigned = []netip.Addr{best.addr}
	case Restore:
		return m.restore(ev)
	case Reassign:
		x := ev.Assignment
		return m.restore(Restore{x.Sandbox, x.Pod, x.Address, x.AssignedAt})
	case Unassign:
		for _, s := range append([]Sandbox{ev.Sandbox}, ev.Aliases...) {
			if a, r := m.owner(s); r != nil {
				r.sandbox, r.pod, r.unassigned, r.passes = Sandbox{}, Pod{}, m.now, m.passes
				delete(m.unplaced, a)
				return nil, []netip.Addr{a}, nil
			}
		}
		return nil, nil, ErrUnknownSandbox
	case FlowsDeleted:
		for a, r := range m.addrs {
			if !slices.Contains(ev.Addresses, a) || r.sandbox != (Sandbox{}) || r.passes == 0 || r.unassigned.After(ev.Began) {
				continue
			}
			if ev.Again.IsZero() {
				r.passes--
			} else if m.cooldown == 0 || ev.Again.Sub(r.unassigned) > m.cooldown {
				r.passes = 0
			}
		}
	case Revert:
		a, r := m.owner(ev.Sandbox)
		if r == nil {
			return nil, nil, ErrUnknownSandbox
		}
		r.sandbox, r.pod = Sandbox{}, Pod{}
		delete(m.unplaced, a)
		if r.unassigned.IsZero() {
			delete(m.addrs, a)
		}
		released = []netip.Addr{a}
	}
	return assigned, released, nil
}

func (m *model) restore(ev Restore) ([]netip.Addr, []netip.Addr, error) {
	if a, r := m.owner(ev.Sandbox); r != nil {
		if a == ev.Address {
			return []netip.Addr{a}, nil, nil
		}
		return nil, nil, ErrDuplicate
	}
	if m.unplaced[ev.Address] != nil {
		return nil, nil, ErrAddressTaken
	}
	if r := m.addrs[ev.Address]; r != nil && r.sandbox != (Sandbox{}) {
		return nil, nil, ErrAddressTaken
	}
	m.unplaced[ev.Address] = &modelAddr{sandbox: ev.Sandbox, pod: ev.Pod, assigned: ev.AssignedAt}
	m.place()
	return []netip.Addr{ev.Address}, nil, nil
}

func (m *model) place() (placed []netip.Addr) {
	for a, r := range m.unplaced {
		p, c := m.cidrOf(a)
		if c == nil || !m.inUse(p) {
			continue
		}
		if old := m.addrs[a]; old != nil {
			r.unassigned, r.passes = old.unassigned, old.passes
		}
		m.addrs[a] = r
		delete(m.unplaced, a)
		placed = append(placed, a)
	}
	return placed
}

func (m *model) add(id ENIID, prefixes []netip.Prefix) ([]netip.Addr, error) {
	fresh := map[netip.Prefix]*modelCIDR{}
	for _, p := range prefixes {
		if p.Contains(m.enis[id].PrimaryIP) {
			return nil, ErrInvalid
		}
		if c := m.cidrs[p]; c != nil && c.eni == id {
			continue
		}
		for q := range m.cidrs {
			if p.Overlaps(q) {
				return nil, ErrDuplicate
			}
		}
		fresh[p] = &modelCIDR{eni: id}
	}
	for p := range fresh {
		for q := range fresh {
			if p != q && p.Overlaps(q) {
				return nil, ErrDuplicate
			}
		}
	}
	for p, c := range fresh {
		m.cidrs[p] = c
	}
	return m.place(), nil
}

func (m *model) check(id ENIID, prefixes []netip.Prefix, free bool) error {
	if m.enis[id] == nil {
		return ErrUnknownENI
	}
	for _, p := range prefixes {
		if c := m.cidrs[p]; c == nil || c.eni != id {
			return ErrUnknownCIDR
		}
	}
	for _, p := range prefixes {
		if free && m.assignedIn(p) > 0 {
			return ErrCIDRInUse
		}
	}
	return nil
}

func (m *model) drop(p netip.Prefix) (released []netip.Addr) {
	for a, r := range m.addrs {
		if p.Contains(a) {
			if r.sandbox != (Sandbox{}) {
				released = append(released, a)
			}
			delete(m.addrs, a)
		}
	}
	delete(m.cidrs, p)
	return released
}

// snapshot is what the book's snapshot should be.
func (m *model) snapshot() Snapshot {
	var s Snapshot
	for id, e := range m.enis {
		state := ENIState{ENI: e.ENI, Held: e.held, QuarantinedAt: e.quarantined}
		for p, c := range m.cidrs {
			if c.eni != id {
				continue
			}
			cs := CIDRState{Prefix: p, Held: c.held, QuarantinedAt: c.quarantined, Assigned: m.assignedIn(p)}
			for a, r := range m.addrs {
				if !p.Contains(a) {
					continue
				}
				as := AddressState{Address: a, Sandbox: r.sandbox, Pod: r.pod, AssignedAt: r.assigned}
				if r.sandbox == (Sandbox{}) {
					as.UnassignedAt, as.Tracked = r.unassigned, r.passes > 0
				}
				cs.Records = append(cs.Records, as)
			}
			slices.SortFunc(cs.Records, func(x, y AddressState) int { return x.Address.Compare(y.Address) })
			state.CIDRs = append(state.CIDRs, cs)
		}
		slices.SortFunc(state.CIDRs, func(x, y CIDRState) int { return comparePrefixes(x.Prefix, y.Prefix) })
		s.ENIs = append(s.ENIs, state)
	}
	slices.SortFunc(s.ENIs, func(x, y ENIState) int {
		return compareENIs(&eni{ENI: x.ENI}, &eni{ENI: y.ENI})
	})
	for a, r := range m.unplaced {
		s.Unplaced = append(s.Unplaced, Assignment{Sandbox: r.sandbox, Pod: r.pod, Address: a, AssignedAt: r.assigned})
	}
	slices.SortFunc(s.Unplaced, func(x, y Assignment) int { return x.Address.Compare(y.Address) })
	return s
}

// chooser makes a random run's decisions, from a seeded generator or fuzzed bytes.
type chooser interface{ pick(n int) int }

type seeded struct{ *rand.Rand }

func (s seeded) pick(n int) int { return s.IntN(n) }

type scripted struct{ data []byte }

func (s *scripted) pick(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % n
}

// A run has few names, so that events interact.
var (
	modelENIs = []ENI{
		{ID: "eni-0", Primary: true, PrimaryIP: netip.MustParseAddr("10.0.0.5"), RouteTable: 254},
		{ID: "eni-1", Device: 1, PrimaryIP: netip.MustParseAddr("10.0.0.6"), RouteTable: 2},
		{ID: "eni-2", Device: 2, Trunk: true, PrimaryIP: netip.MustParseAddr("10.0.0.7"), RouteTable: 3},
		{ID: "eni-3", Card: 1, PrimaryIP: netip.MustParseAddr("10.0.0.8"), RouteTable: 10000},
		{ID: "eni-4", Card: 1, Device: 1, RouteTable: 10001},
		{ID: "eni-5", Card: 2, RouteTable: 10100},
	}
	modelCIDRs = func() []netip.Prefix {
		var all []netip.Prefix
		for i := range 14 { // 10.0.0.5 to .8 are primary addresses
			all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(7 + i)}), 32))
		}
		for _, s := range []string{"10.0.0.0/28", "10.0.0.16/28", "10.0.0.32/28", "10.0.0.48/28", "2001:db8::/80", "2001:db8:0:0:1::/80", "2001:db8::7/128", "2001:db8:1::7/128"} {
			all = append(all, netip.MustParsePrefix(s))
		}
		return all
	}()
)

func modelSandbox(i int) Sandbox {
	if i == 0 { // an entry from an old file
		return Sandbox{Network: "_migrated-from-cri", ContainerID: "c0", IfName: "unknown"}
	}
	return Sandbox{Network: "aws-cni", ContainerID: fmt.Sprintf("c%d", i), IfName: "eth0"}
}

func modelAddress(c chooser) netip.Addr {
	p := modelCIDRs[c.pick(len(modelCIDRs))]
	a := p.Addr()
	for range c.pick(20) {
		a = a.Next()
	}
	return a
}

func modelEvent(c chooser, now time.Time) Event {
	id := modelENIs[c.pick(len(modelENIs))].ID
	some := func() []netip.Prefix {
		var list []netip.Prefix
		for range 1 + c.pick(3) {
			list = append(list, modelCIDRs[c.pick(len(modelCIDRs))])
		}
		return list
	}
	s, card := modelSandbox(c.pick(60)), c.pick(3)
	if c.pick(2) == 1 { // a pod with an interface on each card
		s.Interface = []int{card, card, card, 1}[c.pick(4)]
	}
	pod := Pod{Namespace: "ns", Name: s.ContainerID, Interfaces: 1}
	switch n := c.pick(50); {
	case n < 14:
		return Assign{Sandbox: s, Pod: pod, Card: card, Kind: Kind(c.pick(2)), Family: []Family{IPv4, IPv4, IPv4, IPv6}[c.pick(4)]}
	case n < 22:
		return Unassign{Sandbox: s, Aliases: []Sandbox{modelSandbox(0)}}
	case n < 24:
		return Revert{Sandbox: s}
	case n < 26:
		return Reassign{Assignment{Sandbox: s, Pod: pod, Address: modelAddress(c), AssignedAt: now.Add(-time.Hour)}}
	case n < 28:
		return Restore{Sandbox: s, Pod: pod, Address: modelAddress(c), AssignedAt: now.Add(-time.Minute)}
	case n < 30:
		return AttachENI{ENI: modelENIs[c.pick(len(modelENIs))], CIDRs: some()}
	case n < 31:
		return DetachENI{ID: id, Force: c.pick(3) == 0}
	case n < 32:
		return SetExcluded{ID: id, Excluded: c.pick(3) == 0}
	case n < 35:
		return AddCIDRs{ID: id, CIDRs: some()}
	case n < 36:
		return RemoveCIDRs{ID: id, CIDRs: some()[:1], Force: c.pick(3) == 0}
	case n < 37:
		return HoldCIDRs{ID: id, CIDRs: some()[:1]}
	case n < 38:
		return UnholdCIDRs{ID: id, CIDRs: some()[:1]}
	case n < 39:
		return HoldENI{ID: id}
	case n < 40:
		return QuarantineCIDRs{ID: id, CIDRs: some()[:1]}
	case n < 41:
		return UnquarantineCIDRs{ID: id, CIDRs: some()[:1]}
	case n < 42:
		return QuarantineENI{ID: id}
	case n < 43:
		return UnquarantineENI{ID: id}
	case n < 49:
		ev := FlowsDeleted{Began: now.Add(-modelSteps[c.pick(5)])}
		for range c.pick(40) {
			ev.Addresses = append(ev.Addresses, modelAddress(c))
		}
		ev.Addresses = slices.Compact(sorted(ev.Addresses))
		if c.pick(3) == 0 {
			ev.Again = now.Add(time.Second)
		}
		return ev
	}
	return UnholdENI{ID: id}
}

var modelSteps = []time.Duration{0, 0, 1, time.Second, 3 * time.Second, 30 * time.Second, freshAfter / 2, -5 * time.Second}

// runModel applies the same events to a book and to the model until the end.
func runModel(t testing.TB, c chooser, cooldown time.Duration, passes, steps int, more func() bool) (refused map[string]int) {
	b, m := New(Options{Cooldown: cooldown, Passes: passes}), newModel(cooldown, passes)
	now := time.Date(2026, 8, 21, 9, 0, 0, 0, time.UTC)
	refused = map[string]int{}
	for i := 0; i < steps && more(); i++ {
		now = now.Add(modelSteps[c.pick(len(modelSteps))])
		ev := modelEvent(c, now)
		before := b.Snapshot()
		ch, err := b.Apply(now, ev)
		wantAssigned, wantReleased, wantErr := m.apply(now, ev)
		where := fmt.Sprintf("step %d: %T%+v", i, ev, ev)
		if !errors.Is(err, wantErr) || (err != nil && wantErr == nil) {
			t.Fatalf("%s: error %v, model says %v", where, err, wantErr)
		}
		if err != nil {
			refused[wantErr.Error()]++
			if d := diff(before, b.Snapshot()); d != "" {
				t.Fatalf("%s: refused with %v, yet changed the book (-before +after):\n%s", where, err, d)
			}
		}
		if got, want := addresses(ch.Assigned), sorted(wantAssigned); !slices.Equal(got, want) {
			t.Fatalf("%s: assigned %v, model says %v", where, got, want)
		}
		if got, want := addresses(ch.Released), sorted(wantReleased); !slices.Equal(got, want) {
			t.Fatalf("%s: released %v, model says %v", where, got, want)
		}
		if err := b.Check(); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if d := diff(m.snapshot(), b.Snapshot()); d != "" {
			t.Fatalf("%s: snapshot (-model +book):\n%s", where, d)
		}
		s := modelSandbox(c.pick(60))
		if got, want := addresses(b.Interfaces(s)), m.interfaces(s); !slices.Equal(got, want) {
			t.Fatalf("%s: interfaces of %v have %v, model says %v", where, s, got, want)
		}
	}
	return refused
}

// diff is fast if nothing differs, which is nearly always.
func diff(x, y any) string {
	if reflect.DeepEqual(x, y) {
		return ""
	}
	return cmp.Diff(x, y,
		cmp.Comparer(func(x, y netip.Addr) bool { return x == y }),
		cmp.Comparer(func(x, y netip.Prefix) bool { return x == y }))
}

func addresses(list []Assignment) []netip.Addr {
	var all []netip.Addr
	for _, a := range list {
		all = append(all, a.Address)
	}
	return sorted(all)
}

func sorted(list []netip.Addr) []netip.Addr {
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

func TestBook_AgainstModel(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(6) {
		cooldown := []time.Duration{30 * time.Second, 0, 2 * time.Second}[seed%3]
		c := seeded{rand.New(rand.NewPCG(seed, 1))}
		for reason, n := range runModel(t, c, cooldown, int(seed%2)*2, 1500, func() bool { return true }) {
			seen[reason] += n
		}
	}
	for _, err := range []error{ErrNoAddress, ErrUnknownENI, ErrUnknownCIDR, ErrUnknownSandbox, ErrENIInUse, ErrCIDRInUse, ErrQuarantined, ErrAddressTaken, ErrDuplicate, ErrInvalid} {
		if seen[err.Error()] == 0 {
			t.Errorf("the random events never provoked %q", err)
		}
	}
}

func FuzzBook(f *testing.F) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 2))
		data := make([]byte, 150)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &scripted{data}
		cooldown := time.Duration(c.pick(40)) * time.Second
		runModel(t, c, cooldown, c.pick(3), 300, func() bool { return len(c.data) > 0 })
	})
}
