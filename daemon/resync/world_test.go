package resync

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

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

// world is the true state of EC2, a book that learns of it only through reconciles and its
// own calls, and the kernel's pods.
type world struct {
	t   testing.TB
	c   chooser
	now time.Time

	enis   map[ipam.ENIID]*ENI
	owner  map[netip.Prefix]ipam.ENIID // of the assigned worldCIDRs
	past   [][]ENI                     // earlier states, for views that lag
	routes map[netip.Addr]string       // living pods' host links

	book     *ipam.Book
	released []Release
	others   []Other
	pods     int
	step     int
}

// worldCIDRs are few, so that all actors interact.
var worldCIDRs = append(prefixes("10.1.0.64/28", "10.1.0.80/28"), func() (all []netip.Prefix) {
	for i := range 10 {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(32 + i)}), 32))
	}
	return all
}()...)

func newWorld(t testing.TB, c chooser) *world {
	w := &world{t: t, c: c, now: morning, enis: map[ipam.ENIID]*ENI{}, owner: map[netip.Prefix]ipam.ENIID{},
		routes: map[netip.Addr]string{}, book: ipam.New(ipam.Options{Cooldown: 30 * time.Second})}
	for n := range 4 {
		w.setENI(described(n))
	}
	for _, p := range worldCIDRs {
		if n := c.pick(6); n < 4 {
			w.owner[p] = ipam.ENIID(fmt.Sprintf("eni-%d", n))
		}
	}
	return w
}

func (w *world) setENI(e ENI) { w.enis[e.ID] = &e }

// truth returns EC2's state.
func (w *world) truth() []ENI {
	var all []ENI
	for _, id := range slices.Sorted(maps.Keys(w.enis)) {
		e := *w.enis[id]
		for _, p := range worldCIDRs {
			switch {
			case w.owner[p] != id:
			case p.IsSingleIP():
				e.SecondaryIPs = append(e.SecondaryIPs, p.Addr())
			default:
				e.Prefixes = append(e.Prefixes, p)
			}
		}
		all = append(all, e)
	}
	return all
}

// listing returns the truth, an old truth or nonsense.
func (w *world) listing() []ENI {
	now := w.truth()
	switch w.c.pick(8) {
	case 0, 1:
		return w.past[w.c.pick(len(w.past))]
	case 2: // an impossible answer
		for range 1 + w.c.pick(3) {
			e := &now[w.c.pick(len(now))]
			switch w.c.pick(7) {
			case 6: // without the primary ENI
				return now[1:]
			case 0:
				e.SecondaryIPs = append(slices.Clone(e.SecondaryIPs), netip.AddrFrom4([4]byte{10, 1, 0, byte(30 + w.c.pick(70))}), e.PrimaryIP)
			case 1:
				e.Prefixes = append(slices.Clone(e.Prefixes), prefixes("10.1.0.32/28", "10.1.0.64/26", "10.0.1.0/28", "10.1.0.65/32")[w.c.pick(4)])
			case 2:
				e.SecondaryIPs = append(slices.Clone(e.SecondaryIPs), netip.Addr{}, netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("::ffff:10.1.0.32"))
			case 3:
				e.Prefixes = append(slices.Clone(e.Prefixes), netip.Prefix{}, netip.PrefixFrom(netip.MustParseAddr("10.1.0.70"), 28))
			case 4:
				now = append(now, *e)
			case 5:
				e.Card, e.Device, e.PrimaryIP = w.c.pick(3), w.c.pick(9), netip.Addr{}
			}
		}
		return now
	}
	return now
}

func (w *world) state() Knowledge {
	return []Knowledge{NotAsked, Failed, Known, Known, Known, Known}[w.c.pick(6)]
}

func (w *world) input() ReconcileInput {
	in := ReconcileInput{Now: w.now, Book: w.book.Snapshot(), Policy: policy(), Released: w.released, Others: w.others}
	in.Policy.ManageUntagged = w.c.pick(8) > 0
	in.EC2 = EC2View{State: w.state(), At: w.now.Add(-time.Duration(w.c.pick(3)) * time.Second), ENIs: w.listing()}
	in.Metadata = shownAs(w.listing()...)
	in.Metadata.State, in.Metadata.At = w.state(), w.now
	if w.c.pick(4) == 0 && len(in.Metadata.Interfaces) > 0 {
		f := &in.Metadata.Interfaces[w.c.pick(len(in.Metadata.Interfaces))]
		f.IPv4s, f.Prefixes, f.Unread = nil, nil, PartIPv4s|PartPrefixes
	}
	in.Kernel = KernelView{State: w.state()}
	if in.Kernel.State == Known {
		in.Kernel.Routes = w.podRoutes()
	}
	if w.c.pick(4) == 0 {
		in.Subnets = []Subnet{{ID: "subnet-a", Tags: map[string]string{TagSubnetRole: []string{"0", "1", ""}[w.c.pick(3)]}}}
	}
	if w.c.pick(4) == 0 {
		in.Busy.ENIs = []ipam.ENIID{w.anyENI()}
	}
	if w.c.pick(4) == 0 {
		in.Busy.CIDRs = []netip.Prefix{w.anyCIDR()}
	}
	return in
}

func (w *world) podRoutes() (routes []PodRoute) {
	for a, link := range w.routes {
		routes = append(routes, PodRoute{Address: a, HostLink: link})
	}
	return routes
}

func (w *world) anyENI() ipam.ENIID    { return ipam.ENIID(fmt.Sprintf("eni-%d", w.c.pick(5))) }
func (w *world) anyCIDR() netip.Prefix { return worldCIDRs[w.c.pick(len(worldCIDRs))] }

// move changes one thing in the world.
func (w *world) move() {
	w.past = append(w.past, w.truth())
	w.now = w.now.Add([]time.Duration{0, time.Second, 10 * time.Second, time.Minute, 6 * time.Minute}[w.c.pick(5)])
	id, p := w.anyENI(), w.anyCIDR()
	switch w.c.pick(14) {
	case 0: // someone changes EC2
		delete(w.owner, p)
	case 1:
		if w.enis[id] != nil {
			w.owner[p] = id
		}
	case 2:
		if id != "eni-0" && w.c.pick(2) == 0 {
			delete(w.enis, id)
		}
	case 3:
		if w.enis[id] == nil {
			w.setENI(described(int(id[4] - '0')))
		}
	case 4:
		if e := w.enis[id]; e != nil {
			next := *e
			next.Tags = map[string]string{TagNoManage: []string{"true", "false"}[w.c.pick(2)]}
			w.setENI(next)
		}
	case 5: // the daemon grows
		if e := w.enis[id]; e != nil && w.owner[p] == "" && w.apply(ipam.AddCIDRs{ID: id, CIDRs: []netip.Prefix{p}}) {
			w.owner[p] = id
		}
	case 6: // and shrinks
		if w.owner[p] == id && w.apply(ipam.HoldCIDRs{ID: id, CIDRs: []netip.Prefix{p}}) && w.c.pick(3) > 0 {
			delete(w.owner, p)
			w.must(ipam.RemoveCIDRs{ID: id, CIDRs: []netip.Prefix{p}})
			w.released = append(w.released, Release{p, w.now})
		}
	case 7:
		w.apply(ipam.UnholdCIDRs{ID: id, CIDRs: []netip.Prefix{p}})
	case 8, 9, 10, 11:
		w.add()
	case 12:
		w.end()
	case 13: // a record is lost, and its pod lives on
		for _, a := range w.assignments() {
			w.must(ipam.Revert{Sandbox: a.Sandbox})
			return
		}
	}
}

func (w *world) add() {
	w.pods++
	s := ipam.Sandbox{Network: "aws-cni", ContainerID: fmt.Sprint("c", w.pods), IfName: "eth0"}
	ch, err := w.book.Apply(w.now, ipam.Assign{Sandbox: s, Kind: ipam.Kind(w.c.pick(2)), Family: ipam.IPv4})
	if err != nil {
		return
	}
	a := ch.Assigned[0].Address
	if w.c.pick(4) > 0 { // otherwise its link does not exist yet
		w.routes[a] = "eni" + s.ContainerID
	}
}

func (w *world) end() {
	for _, a := range w.assignments() {
		delete(w.routes, a.Address)
		w.must(ipam.Unassign{Sandbox: a.Sandbox})
		return
	}
}

// assignments returns all assignments, starting anywhere.
func (w *world) assignments() []ipam.Assignment {
	all := slices.Collect(w.book.Assignments())
	if len(all) == 0 {
		return nil
	}
	first := w.c.pick(len(all))
	return append(all[first:], all[:first]...)
}

func (w *world) apply(ev ipam.Event) bool {
	_, err := w.book.Apply(w.now, ev)
	return err == nil
}

func (w *world) must(ev ipam.Event) {
	w.t.Helper()
	if _, err := w.book.Apply(w.now, ev); err != nil {
		w.t.Fatalf("step %d: %T%+v: %v", w.step, ev, ev, err)
	}
}

// reconcile runs one and checks it against all invariants.
func (w *world) reconcile(in ReconcileInput) ReconcileResult {
	w.t.Helper()
	before := slices.Collect(w.book.Assignments())
	held := heldIn(in.Book)
	res := Reconcile(in)
	if !reflect.DeepEqual(res, Reconcile(in)) {
		w.t.Fatalf("step %d: two results of one input", w.step)
	}
	for _, ev := range res.Events {
		w.judge(in, res, ev)
		w.must(ev)
	}
	if err := w.book.Check(); err != nil {
		w.t.Fatalf("step %d: %v", w.step, err)
	}
	for _, a := range before {
		got, ok := w.book.Lookup(a.Sandbox)
		if !ok || got.Address != a.Address || a.ENI != "" && got.ENI != a.ENI {
			w.t.Fatalf("step %d: %+v became %+v by %+v", w.step, a, got, res.Events)
		}
	}
	for p := range heldIn(w.book.Snapshot()) {
		delete(held, p)
	}
	for p := range held {
		for a, link := range w.routes {
			if p.Contains(a) {
				w.t.Fatalf("step %d: %v is gone, but %s leads to %v", w.step, p, link, a)
			}
		}
	}
	again := in
	again.Book = w.book.Snapshot()
	if second := Reconcile(again); len(second.Events) > 0 {
		w.t.Fatalf("step %d: not settled by %+v: again %+v", w.step, res.Events, second.Events)
	}
	w.released = slices.DeleteFunc(slices.Clone(w.released), func(r Release) bool { return slices.Contains(res.Forget, r.CIDR) })
	if res.Settled {
		w.others = res.Others
	}
	return res
}

func heldIn(s ipam.Snapshot) map[netip.Prefix]bool {
	all := map[netip.Prefix]bool{}
	for _, e := range s.ENIs {
		for _, c := range e.CIDRs {
			all[c.Prefix] = true
		}
	}
	return all
}

// judge checks one event.
func (w *world) judge(in ReconcileInput, res ReconcileResult, ev ipam.Event) {
	w.t.Helper()
	fail := func(text string) { w.t.Fatalf("step %d: %T%+v: %s", w.step, ev, ev, text) }
	var id ipam.ENIID
	var cidrs []netip.Prefix
	removal := false
	switch ev := ev.(type) {
	case ipam.Restore:
		if in.Kernel.State != Known || w.routes[ev.Address] == "" {
			fail("no pod is there")
		}
		return
	case ipam.AddCIDRs:
		id, cidrs = ev.ID, ev.CIDRs
	case ipam.RemoveCIDRs:
		id, cidrs, removal = ev.ID, ev.CIDRs, true
		if ev.Force {
			fail("by force")
		}
	case ipam.DetachENI:
		id, removal = ev.ID, true
		if ev.Force || id == in.Policy.PrimaryENI {
			fail("by force, or the primary ENI")
		}
	case ipam.QuarantineCIDRs:
		id, cidrs = ev.ID, ev.CIDRs
	case ipam.UnquarantineCIDRs:
		id, cidrs = ev.ID, ev.CIDRs
	case ipam.QuarantineENI:
		id = ev.ID
		if id == in.Policy.PrimaryENI {
			fail("the primary ENI")
		}
	case ipam.UnquarantineENI:
		id = ev.ID
	case ipam.SetExcluded:
		id = ev.ID
	default:
		fail("unexpected")
	}
	if in.EC2.State != Known || !res.Settled {
		fail("EC2 has not said so")
	}
	if removal && in.Kernel.State != Known {
		fail("removed, and the kernel is not known")
	}
	if slices.Contains(in.Busy.ENIs, id) || slices.ContainsFunc(cidrs, func(p netip.Prefix) bool { return slices.Contains(in.Busy.CIDRs, p) }) {
		fail("at work")
	}
	for _, rel := range in.Released {
		if _, adds := ev.(ipam.AddCIDRs); adds && slices.Contains(cidrs, rel.CIDR) && in.EC2.At.Sub(rel.At) < ReleaseSettle {
			fail("given back a moment ago")
		}
	}
}

// setUp attaches what a reconcile found, as if its routes were set up.
func (w *world) setUp(res ReconcileResult) {
	w.t.Helper()
	for _, a := range res.SetUp {
		w.must(ipam.AttachENI{ENI: a.ENI, CIDRs: a.CIDRs})
	}
}

// converge ends all pods and operations and then shows truthful views: after two rounds the
// book equals EC2's state.
func (w *world) converge() {
	w.t.Helper()
	clear(w.routes)
	for _, e := range w.book.Snapshot().ENIs {
		for _, c := range e.CIDRs {
			if c.Held {
				w.must(ipam.UnholdCIDRs{ID: e.ID, CIDRs: []netip.Prefix{c.Prefix}})
			}
		}
	}
	for _, a := range slices.Collect(w.book.Assignments()) {
		w.must(ipam.Unassign{Sandbox: a.Sandbox})
	}
	truth := w.truth()
	for range 2 {
		w.now = w.now.Add(2 * ReleaseSettle)
		in := ReconcileInput{Now: w.now, Book: w.book.Snapshot(), Policy: policy(), Released: w.released, Others: w.others,
			EC2: EC2View{Known, w.now, truth}, Metadata: shownAs(truth...), Kernel: routed()}
		w.setUp(w.reconcile(in))
	}
	if len(w.released) > 0 {
		w.t.Fatalf("releases are remembered for ever: %v", w.released)
	}
	want, got := map[ipam.ENIID][]netip.Prefix{}, map[ipam.ENIID][]netip.Prefix{}
	for _, e := range truth {
		if e.ID == "eni-0" || e.Tags[TagNoManage] != "true" {
			want[e.ID] = slices.SortedFunc(slices.Values(e.CIDRs()), comparePrefixes)
		}
	}
	for _, e := range w.book.Snapshot().ENIs {
		got[e.ID] = []netip.Prefix{}
		if e.Quarantined() {
			w.t.Fatalf("%s is quarantined", e.ID)
		}
		for _, c := range e.CIDRs {
			if c.Quarantined() {
				w.t.Fatalf("%v is quarantined", c.Prefix)
			}
			got[e.ID] = append(got[e.ID], c.Prefix)
		}
	}
	if len(got) != len(want) {
		w.t.Fatalf("book %v, EC2 has %v", got, want)
	}
	for id, list := range want {
		if have, ok := got[id]; !ok || !slices.Equal(have, list) {
			w.t.Fatalf("%s: book %v, EC2 has %v", id, got, want)
		}
	}
	// The metadata's current view raises no doubts.
	in := ReconcileInput{Now: w.now, Book: w.book.Snapshot(), Policy: policy(), Others: w.others, Metadata: shownAs(truth...), Kernel: routed()}
	if res := w.reconcile(in); res.NeedEC2 || len(res.Notes) > 0 {
		w.t.Fatalf("in doubt: %+v", res)
	}
}

func runWorld(t testing.TB, c chooser, steps int, more func() bool) {
	w := newWorld(t, c)
	var late []Attached
	for w.step = 0; w.step < steps && more(); w.step++ {
		w.move()
		if c.pick(2) == 0 {
			continue
		}
		res := w.reconcile(w.input())
		if c.pick(4) > 0 {
			w.setUp(res)
		} else {
			late = append(late, res.SetUp...)
		}
		if c.pick(4) == 0 { // some are set up later, when everything may have changed
			for _, ev := range Adopt(w.book.Snapshot(), late) {
				w.must(ev)
			}
			late = nil
		}
	}
	w.converge()
}

func TestReconcile_RandomWorlds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runWorld(t, seeded{rand.New(rand.NewPCG(seed, 3))}, 80, func() bool { return true })
		})
	}
}

func FuzzReconcile(f *testing.F) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 4))
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &scripted{data}
		runWorld(t, c, 200, func() bool { return len(c.data) > 0 })
	})
}

// BenchmarkReconcile is one full look at a node of 15 ENIs with 50 addresses each, listed by
// EC2 and the metadata, and 500 pods.
func BenchmarkReconcile(b *testing.B) {
	var enis []ENI
	events := make([]ipam.Event, 0, 15)
	var kernel KernelView
	kernel.State = Known
	for n := range 15 {
		e := described(n)
		for i := range 50 {
			a := netip.AddrFrom4([4]byte{10, 2, byte(n), byte(10 + i)})
			e.SecondaryIPs = append(e.SecondaryIPs, a)
			if i%3 > 0 {
				kernel.Routes = append(kernel.Routes, PodRoute{Address: a, HostLink: "eni" + a.String()})
			}
		}
		enis = append(enis, e)
		events = append(events, ipam.AttachENI{ENI: entryOf(n), CIDRs: e.CIDRs()})
	}
	for _, r := range kernel.Routes {
		events = append(events, pod(r.Address.String()))
	}
	in := ReconcileInput{Now: morning, Policy: policy(), Kernel: kernel, Metadata: shownAs(enis...), Book: bookOf(b, morning, events...).Snapshot()}
	run := func(name string, in ReconcileInput, events int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if res := Reconcile(in); len(res.Events) != events || res.NeedEC2 {
					b.Fatalf("%+v", res)
				}
			}
		})
	}
	run("metadata", in, 0)
	in.EC2 = listed(enis...)
	run("ec2", in, 0)
	for i := range enis {
		enis[i].SecondaryIPs = slices.Concat(enis[i].SecondaryIPs[5:], []netip.Addr{netip.AddrFrom4([4]byte{10, 3, byte(i), 9})})
	}
	in.EC2 = listed(enis...)
	run("ec2 with changes", in, 30)
}
