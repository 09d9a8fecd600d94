package fleetsim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// How long EC2 takes, jitter aside, and kubelet's patience with an ADD.
const (
	attachTakes  = 4 * time.Second
	assignTakes  = 900 * time.Millisecond
	releaseTakes = 700 * time.Millisecond
	detachTakes  = 6 * time.Second
	addPatience  = 15 * time.Second
	exhaustedFor = 2 * time.Minute
)

// Bounds of what a node remembers.
const (
	maxEvents   = 64
	maxFailures = 20
)

// world is a node's pool and its pods, as they are at one moment. It goes forward in
// time only, from event to event, each of which draws from its own random numbers: when
// it is looked at changes nothing.
type world struct {
	node *node
	rnd  *rand.Rand
	now  time.Time
	book *ipam.Book

	pods    []*workload // by age
	wish    int         // as many pods as there want to be
	made    int         // pods so far
	ops     []operation
	nextPod time.Time
	replan  time.Time // when the planner wants to be asked again; zero: when something changes

	enis    int // made so far
	used    [blockSize]bool
	nextV6  int
	backoff map[ipam.ENIID]time.Time
	attach  time.Time // backed off until
	subnet  time.Time
	cause   cause.Code
	shrunk  time.Time // the last scale-down

	seq      uint64 // of the newest event
	events   []introspect.Event
	failures []introspect.Failure
	errors   []introspect.LastError
	calls    map[string]*introspect.EC2Calls
	adds     introspect.RequestCounts
	dels     introspect.RequestCounts
	branches int
}

// workload is a pod of the node's.
type workload struct {
	namespace, name string
	number          int
	created         time.Time
	address         netip.Addr // zero while it waits
	waits           time.Time  // since when; zero: it does not
	tries           int        // ADDs that failed
	version         uint64
}

func (p *workload) sandbox() ipam.Sandbox {
	return ipam.Sandbox{Network: "aws-cni", ContainerID: fmt.Sprintf("%s/%s", p.namespace, p.name), IfName: "eth0"}
}

// operation is a request to EC2 in flight.
type operation struct {
	pending warmpool.Pending
	action  warmpool.Action
	begun   time.Time
	done    time.Time
}

// look brings the node's pool to the present and hands it out, locked.
func (n *node) look(see func(*world)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.world == nil {
		n.world = newWorld(n)
	}
	n.world.advance(n.sim.now())
	see(n.world)
}

// newWorld is the node as it is when the fleet starts: settled, with its pods.
func newWorld(n *node) *world {
	seed := n.sim.hash(n.index, "world")
	w := &world{
		node: n, rnd: rand.New(rand.NewPCG(seed, 2)), now: n.started, book: ipam.New(ipam.Options{Cooldown: cooldown}),
		backoff: map[ipam.ENIID]time.Time{}, calls: map[string]*introspect.EC2Calls{},
		adds: introspect.RequestCounts{Causes: map[string]int{}}, dels: introspect.RequestCounts{Causes: map[string]int{}},
	}
	for i := range 4 { // the subnet's router and the like, in its first block
		w.used[i] = true
	}
	w.attachENI(warmpool.AttachENI{Card: 0, Device: 0})
	if n.profile.podENI {
		w.attachENI(warmpool.AttachENI{Card: 0, Device: 1})
		w.branches = w.rnd.IntN(max(1, n.profile.limits.BranchENIs/2))
	}
	w.wish = 2 + w.rnd.IntN(max(1, w.room()*3/4))
	for range w.wish {
		w.newPod(n.started.Add(time.Duration(w.rnd.Int64N(int64(n.sim.epoch.Sub(n.started))))))
	}
	slices.SortFunc(w.pods, func(a, b *workload) int { return cmp.Or(a.created.Compare(b.created), a.number-b.number) })
	w.settle()
	for _, p := range w.pods {
		w.now = p.created
		if !w.assign(p) {
			p.waits = n.sim.epoch
		}
	}
	w.now = n.sim.epoch
	w.settle()
	w.events, w.seq = nil, 0
	w.note(introspect.Event{Kind: introspect.EventStarted, At: n.started})
	w.nextPod = w.later()
	w.plan()
	return w
}

// room is how many pods there may be that need an address.
func (w *world) room() int { return max(2, w.node.profile.maxPods-3) }

// later draws when the next pod comes or goes.
func (w *world) later() time.Time {
	churn := w.node.sim.opts.Churn
	if churn < 0 {
		return w.now.Add(100 * 365 * 24 * time.Hour)
	}
	return w.now.Add(time.Duration(float64(churn) * (0.05 + w.rnd.ExpFloat64())))
}

// advance plays what happens until a moment.
func (w *world) advance(to time.Time) {
	for {
		at, what := w.nextPod, w.churn
		for i := range w.ops {
			if w.ops[i].done.Before(at) {
				at, what = w.ops[i].done, func() { w.finish(i) }
			}
		}
		if !w.replan.IsZero() && w.replan.Before(at) {
			at, what = w.replan, func() { w.replan = time.Time{} }
		}
		for _, p := range w.pods {
			if end := p.waits.Add(addPatience); !p.waits.IsZero() && end.Before(at) {
				at, what = end, func() { w.giveUp(p) }
			}
		}
		if at.After(to) {
			break
		}
		w.now = maxTime(w.now, at)
		what()
		w.serveWaiting()
		w.plan()
	}
	w.now = maxTime(w.now, to)
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// churn lets a pod come or go.
func (w *world) churn() {
	if w.rnd.IntN(12) == 0 {
		w.wish = 1 + w.rnd.IntN(w.room())
	}
	if w.node.profile.podENI && w.rnd.IntN(4) == 0 {
		w.branches = min(max(0, w.branches+w.rnd.IntN(3)-1), w.node.profile.limits.BranchENIs)
	}
	more := len(w.pods) < w.wish || (len(w.pods) == w.wish && w.rnd.IntN(2) == 0)
	if w.node.cordoned {
		more = false
	}
	switch {
	case more && len(w.pods) < w.room():
		p := w.newPod(w.now)
		if !w.assign(p) {
			p.waits = w.now
			w.note(introspect.Event{Kind: introspect.EventPoolMissed, Pod: p.ref()})
		}
		w.published(p, nil, added)
	case len(w.pods) > 0 && !w.node.cordoned:
		w.drop(w.rnd.IntN(len(w.pods)))
	}
	w.nextPod = w.later()
}

// apps are what pods are of, by namespace.
var apps = []struct{ namespace, name string }{
	{"shop", "cart"}, {"shop", "web"}, {"shop", "search"}, {"payments", "ledger"}, {"payments", "till"},
	{"batch", "resize"}, {"batch", "report"}, {"default", "echo"}, {"observability", "collector"},
}

func namespaces() []string {
	out := []string{systemNamespace, "kube-public"}
	for _, a := range apps {
		if !slices.Contains(out, a.namespace) {
			out = append(out, a.namespace)
		}
	}
	slices.Sort(out)
	return out
}

func (w *world) newPod(created time.Time) *workload {
	app := apps[w.rnd.IntN(len(apps))]
	w.made++
	p := &workload{
		namespace: app.namespace, number: w.made, created: created.Truncate(time.Second), version: firstVersion,
		name: app.name + "-" + suffix(w.node.sim.hash(w.rnd.IntN(4), app.name), 9) + "-" + suffix(w.node.sim.hash(w.node.index, fmt.Sprint(w.made)), 5),
	}
	w.pods = append(w.pods, p)
	return p
}

func (p *workload) ref() *introspect.PodRef {
	return &introspect.PodRef{Namespace: p.namespace, Name: p.name}
}

// told is a pod's name as the daemon tells it.
func (w *world) told(ref introspect.PodRef) introspect.PodRef {
	return introspect.PodRef{Namespace: ref.Namespace, Name: w.node.said(ref.Name)}
}

func (w *world) kind() (ipam.Kind, ipam.Family) {
	kind, family := ipam.SecondaryIPs, ipam.IPv4
	if w.node.profile.policy.PrefixDelegation || w.node.profile.policy.IPv6 {
		kind = ipam.Prefixes
	}
	if w.node.profile.policy.IPv6 {
		family = ipam.IPv6
	}
	return kind, family
}

// assign gives a pod an address if there is one.
func (w *world) assign(p *workload) bool {
	kind, family := w.kind()
	change, err := w.book.Apply(w.now, ipam.Assign{Sandbox: p.sandbox(), Pod: ipam.Pod{Namespace: p.namespace, Name: p.name, Interfaces: 1}, Kind: kind, Family: family})
	if err != nil {
		if !errors.Is(err, ipam.ErrNoAddress) {
			panic(fmt.Sprintf("fleetsim: assign: %v", err)) // a mistake here
		}
		return false
	}
	w.adds.Total++
	a := change.Assigned[0]
	p.address, p.waits = a.Address, time.Time{}
	w.note(introspect.Event{Kind: introspect.EventAddressAssigned, Pod: p.ref(), Address: a.Address, ENIID: string(a.ENI)})
	return true
}

// drop ends a pod.
func (w *world) drop(i int) {
	p := w.pods[i]
	was := w.node.podObject(p)
	w.pods = slices.Delete(w.pods, i, i+1)
	if p.waits.IsZero() {
		w.must(ipam.Unassign{Sandbox: p.sandbox()})
		w.dels.Total++
		w.note(introspect.Event{Kind: introspect.EventAddressReleased, Pod: p.ref(), Address: p.address})
	}
	w.published(p, was, deleted)
}

func (w *world) must(ev ipam.Event) {
	if _, err := w.book.Apply(w.now, ev); err != nil {
		panic(fmt.Sprintf("fleetsim: node %s: %T: %v", w.node.name, ev, err)) // a mistake here
	}
}

// serveWaiting gives the pods that wait what there is by now, the oldest first.
func (w *world) serveWaiting() {
	for _, p := range w.pods {
		if p.waits.IsZero() {
			continue
		}
		was := w.node.podObject(p)
		if !w.assign(p) {
			return
		}
		w.published(p, was, changed)
	}
}

// giveUp answers an ADD that waited too long; kubelet tries again.
func (w *world) giveUp(p *workload) {
	code, detail := cause.PoolDry, "the pool could not grow in time"
	if blocked, text, ok := warmpool.Blocked(w.snapshot(), w.node.profile.policy, w.now, 0); ok {
		code, detail = blocked, text
	}
	p.tries++
	w.adds.Total++
	w.adds.Failed++
	w.adds.Causes[string(code)]++
	w.failures = append(w.failures, introspect.Failure{
		At: w.now, Pod: *p.ref(), Cause: string(code), Title: code.Title(), Detail: detail,
		WaitedMS: w.now.Sub(p.waits).Milliseconds(), Transient: code == cause.PoolDry || code == cause.AddressesCooling,
	})
	if len(w.failures) > maxFailures {
		w.failures = slices.Delete(w.failures, 0, 1)
	}
	w.note(introspect.Event{Kind: introspect.EventADDFailed, Pod: p.ref(), Cause: string(code), Message: code.Title()})
	w.fail("ADD", code, code.Title())
	p.waits = w.now
	w.publishEvent(p, detail)
}

// fail remembers an error, the same one folded together.
func (w *world) fail(operation string, code cause.Code, message string) {
	for i := range w.errors {
		if e := &w.errors[i]; e.Operation == operation && e.Cause == string(code) {
			e.At, e.Count = w.now, e.Count+1
			return
		}
	}
	w.errors = append(w.errors, introspect.LastError{At: w.now, Operation: operation, Cause: string(code), Message: message, Count: 1})
	if len(w.errors) > introspect.MaxLastErrors {
		w.errors = slices.Delete(w.errors, 0, 1)
	}
}

func (w *world) note(e introspect.Event) {
	w.seq++
	e.Seq = w.seq
	if e.At.IsZero() {
		e.At = w.now
	}
	if len(w.events) >= maxEvents {
		w.events = slices.Delete(w.events, 0, maxEvents/4)
	}
	w.events = append(w.events, e)
}

// snapshot is what the planner sees.
func (w *world) snapshot() warmpool.Snapshot {
	p := w.node.profile
	cards := 1
	if p.policy.MultiNIC {
		cards = len(p.limits.Cards)
	}
	s := warmpool.Snapshot{
		Book: w.book.Snapshot(), Limits: warmpool.Limits{IPv4PerENI: p.limits.IPv4PerENI, ENIsByCard: p.limits.ENIsByCard()[:cards]},
		Subnets: []warmpool.Subnet{{ID: w.node.subnet, AvailableIPs: w.node.sim.available(w.node.index, w.now), BackoffUntil: w.subnet}},
		Waiting: make([]int, cards), ENIBackoff: w.backoff, AttachBackoff: w.attach, AttachBackoffCause: w.cause,
		LastScaleDown: w.shrunk, Unschedulable: w.node.cordoned,
	}
	for _, pod := range w.pods {
		if pod.address == (netip.Addr{}) {
			s.Waiting[0]++
		}
	}
	for i := range w.ops {
		s.Pending = append(s.Pending, w.ops[i].pending)
	}
	return s
}

// plan begins what the planner wants.
func (w *world) plan() {
	w.replan = time.Time{}
	for _, a := range warmpool.Plan(w.snapshot(), w.node.profile.policy, w.now) {
		if wait, ok := a.(warmpool.Wait); ok {
			w.replan = maxTime(wait.Until, w.now.Add(time.Second))
			continue
		}
		w.begin(a)
	}
}

func (w *world) begin(a warmpool.Action) {
	op := operation{action: a, begun: w.now}
	takes := assignTakes
	switch a := a.(type) {
	case warmpool.AttachENI:
		op.pending = warmpool.Pending{Kind: warmpool.PendingAttach, Card: a.Card, Device: a.Device, IPs: a.IPs, Prefixes: a.Prefixes, SubnetID: w.node.subnet}
		takes = attachTakes
	case warmpool.AssignAddresses:
		op.pending = warmpool.Pending{Kind: warmpool.PendingAssign, ENI: a.ENI, IPs: a.Count}
	case warmpool.AssignPrefixes:
		op.pending = warmpool.Pending{Kind: warmpool.PendingAssign, ENI: a.ENI, Prefixes: a.Count}
	case warmpool.UnassignAddresses:
		op.pending = w.hold(a.ENI, a.CIDRs)
		op.pending.IPs, takes = len(a.CIDRs), releaseTakes
	case warmpool.UnassignPrefixes:
		op.pending = w.hold(a.ENI, a.CIDRs)
		op.pending.Prefixes, takes = len(a.CIDRs), releaseTakes
	case warmpool.DetachENI:
		w.must(ipam.HoldENI{ID: a.ENI})
		w.shrunk = w.now
		op.pending, takes = warmpool.Pending{Kind: warmpool.PendingDetach, ENI: a.ENI}, detachTakes
	}
	for _, e := range w.book.Snapshot().ENIs {
		if e.ID == op.pending.ENI {
			op.pending.Card, op.pending.Device = e.Card, e.Device
		}
	}
	op.done = w.now.Add(takes + time.Duration(w.rnd.Int64N(int64(takes))))
	w.ops = append(w.ops, op)
	w.note(introspect.Event{Kind: introspect.EventActionStarted, ENIID: string(op.pending.ENI), Reason: string(a.Why()), Message: fmt.Sprint(a)})
}

func (w *world) hold(id ipam.ENIID, cidrs []netip.Prefix) warmpool.Pending {
	w.must(ipam.HoldCIDRs{ID: id, CIDRs: cidrs})
	w.shrunk = w.now
	return warmpool.Pending{Kind: warmpool.PendingRelease, ENI: id}
}

// finish ends an operation, well or not.
func (w *world) finish(i int) {
	op := w.ops[i]
	w.ops = slices.Delete(w.ops, i, i+1)
	action, code := w.refused(op)
	c := w.calls[action]
	if c == nil {
		c = &introspect.EC2Calls{Action: action}
		w.calls[action] = c
	}
	c.Calls++
	at := w.now
	c.LastAt = &at
	if code != "" {
		c.Errors++
		w.fail(action, code, code.Title())
		w.note(introspect.Event{Kind: introspect.EventActionFailed, ENIID: string(op.pending.ENI), Cause: string(code), Reason: string(op.action.Why()), Message: code.Title()})
		w.holdBack(op, code)
		return
	}
	w.carryOut(op.action)
	took := w.now.Sub(op.begun).Milliseconds()
	w.note(introspect.Event{Kind: introspect.EventActionDone, ENIID: string(op.pending.ENI), Reason: string(op.action.Why()), DurationMS: &took})
}

// refused tells the EC2 action of an operation, and why EC2 refuses it, if it does.
func (w *world) refused(op operation) (action string, code cause.Code) {
	ailment := w.node.sim.hash(w.node.index, "ailment") % 120
	scarce := w.node.sim.available(w.node.index, w.now) < max(1, op.pending.IPs+16*op.pending.Prefixes)
	if w.node.profile.policy.IPv6 {
		scarce = false
	}
	switch op.pending.Kind {
	case warmpool.PendingAttach:
		switch {
		case ailment == 1:
			return "CreateNetworkInterface", cause.EC2Unauthorized
		case scarce:
			return "CreateNetworkInterface", cause.SubnetExhausted
		case ailment == 2:
			return "AttachNetworkInterface", cause.ENIAttachLimit
		case w.rnd.IntN(60) == 0:
			return "CreateNetworkInterface", cause.EC2Throttled
		}
		return "CreateNetworkInterface", ""
	case warmpool.PendingAssign:
		switch {
		case ailment == 1:
			return "AssignPrivateIpAddresses", cause.EC2Unauthorized
		case scarce:
			return "AssignPrivateIpAddresses", cause.SubnetExhausted
		case ailment == 3 && op.pending.Prefixes > 0:
			return "AssignPrivateIpAddresses", cause.SubnetFragmented
		case w.rnd.IntN(60) == 0:
			return "AssignPrivateIpAddresses", cause.EC2Throttled
		}
		return "AssignPrivateIpAddresses", ""
	case warmpool.PendingRelease:
		return "UnassignPrivateIpAddresses", ""
	}
	return "DetachNetworkInterface", ""
}

// holdBack sets the clocks that a failure starts.
func (w *world) holdBack(op operation, code cause.Code) {
	until := w.now.Add(exhaustedFor)
	if code == cause.EC2Throttled {
		until = w.now.Add(10 * time.Second)
	}
	w.cause = code
	if code == cause.SubnetExhausted {
		w.subnet = until
	}
	if op.pending.Kind == warmpool.PendingAttach {
		w.attach = until
	} else {
		w.backoff[op.pending.ENI] = until
	}
	w.note(introspect.Event{Kind: introspect.EventBackoffStarted, ENIID: string(op.pending.ENI), Cause: string(code)})
}

// carryOut does an action to the book.
func (w *world) carryOut(a warmpool.Action) {
	switch a := a.(type) {
	case warmpool.AttachENI:
		w.attachENI(a)
	case warmpool.AssignAddresses:
		w.must(ipam.AddCIDRs{ID: a.ENI, CIDRs: w.take(a.Count, 0)})
	case warmpool.AssignPrefixes:
		w.must(ipam.AddCIDRs{ID: a.ENI, CIDRs: w.take(0, a.Count)})
	case warmpool.UnassignAddresses:
		w.give(a.CIDRs)
		w.must(ipam.RemoveCIDRs{ID: a.ENI, CIDRs: a.CIDRs})
	case warmpool.UnassignPrefixes:
		w.give(a.CIDRs)
		w.must(ipam.RemoveCIDRs{ID: a.ENI, CIDRs: a.CIDRs})
	case warmpool.DetachENI:
		for _, e := range w.book.Snapshot().ENIs {
			if e.ID != a.ENI {
				continue
			}
			w.give([]netip.Prefix{netip.PrefixFrom(e.PrimaryIP, 32)})
			for _, c := range e.CIDRs {
				w.give([]netip.Prefix{c.Prefix})
			}
		}
		w.must(ipam.DetachENI{ID: a.ENI})
		delete(w.backoff, a.ENI)
		w.note(introspect.Event{Kind: introspect.EventENIDetached, ENIID: string(a.ENI)})
	}
}

// attachENI adds an ENI: the first is the primary one, the second of a node with
// security groups for pods its trunk.
func (w *world) attachENI(a warmpool.AttachENI) {
	n := w.node
	first := w.enis == 0
	w.enis++
	e := ipam.ENI{
		ID: ipam.ENIID(fmt.Sprintf("eni-0%016x", n.sim.hash(n.index, fmt.Sprint("eni", w.enis)))), Card: a.Card, Device: a.Device,
		MAC: fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", byte(n.index>>8), byte(n.index), byte(w.enis>>8), byte(w.enis), a.Card), Primary: first,
		Trunk: n.profile.podENI && w.enis == 2, SubnetID: n.subnet, Subnet: n.prefix, RouteTable: 254, AttachedAt: w.now,
	}
	if first {
		e.PrimaryIP = n.ip
		w.used[4] = true
	} else {
		e.PrimaryIP = w.take(1, 0)[0].Addr()
		if e.RouteTable = a.Device + 1; a.Card > 0 {
			e.RouteTable = a.Card*100 + a.Device + 1
		}
	}
	if n.profile.policy.CustomNetworking && !first {
		e.SubnetID = fmt.Sprintf("subnet-0%016x", 0xc057000+n.index%len(zones))
	}
	w.must(ipam.AttachENI{ENI: e, CIDRs: w.take(a.IPs, a.Prefixes)})
	w.note(introspect.Event{Kind: introspect.EventENIAttached, ENIID: string(e.ID), Card: &e.Card, Device: &e.Device, SubnetID: e.SubnetID})
}

// take finds free addresses and prefixes of the node's block.
func (w *world) take(ips, prefixes int) []netip.Prefix {
	var out []netip.Prefix
	if w.node.profile.policy.IPv6 {
		for range prefixes {
			w.nextV6++
			out = append(out, netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(w.node.index >> 8), byte(w.node.index), 0, 0, byte(w.nextV6 >> 8), byte(w.nextV6)}), 80))
		}
		return append(out, w.find(ips, 1)...)
	}
	return append(w.find(ips, 1), w.find(prefixes, 16)...)
}

func (w *world) find(count, size int) []netip.Prefix {
	var out []netip.Prefix
	for at := 0; count > 0 && at+size <= blockSize; at += size {
		if slices.Contains(w.used[at:at+size], true) {
			continue
		}
		for i := range size {
			w.used[at+i] = true
		}
		out = append(out, netip.PrefixFrom(w.addr(at), map[int]int{1: 32, 16: 28}[size]))
		count--
	}
	return out
}

func (w *world) addr(at int) netip.Addr {
	a := w.node.block.As4()
	a[2] += byte(at >> 8)
	a[3] = byte(at)
	return netip.AddrFrom4(a)
}

// give returns addresses to the node's block.
func (w *world) give(cidrs []netip.Prefix) {
	for _, c := range cidrs {
		if !c.Addr().Is4() {
			continue
		}
		a, b := c.Addr().As4(), w.node.block.As4()
		at := int(a[2]-b[2])<<8 + int(a[3])
		for i := range 1 << (32 - c.Bits()) {
			w.used[at+i] = false
		}
	}
}

// settle carries out what the planner wants at once, until it wants nothing.
func (w *world) settle() {
	for range 32 {
		done := true
		for _, a := range warmpool.Plan(w.snapshot(), w.node.profile.policy, w.now) {
			if _, ok := a.(warmpool.Wait); ok {
				continue
			}
			switch a := a.(type) {
			case warmpool.UnassignAddresses:
				w.hold(a.ENI, a.CIDRs)
			case warmpool.UnassignPrefixes:
				w.hold(a.ENI, a.CIDRs)
			case warmpool.DetachENI:
				w.must(ipam.HoldENI{ID: a.ENI})
			}
			w.carryOut(a)
			done = false
		}
		if done {
			return
		}
	}
}

// available is how many addresses EC2 says are free in the subnet of a node. One zone's
// first subnets run dry and recover, again and again.
func (s *Sim) available(index int, now time.Time) int {
	_, subnet := blockOf(index)
	const turn = 40 * time.Minute
	phase := float64(now.Sub(s.epoch)+time.Duration(subnet)*7*time.Minute) / float64(turn)
	phase -= float64(int(phase))
	if subnet%6 != 2 {
		return 20000 + int(8000*phase)
	}
	return max(0, int(1200*(1-1.4*phase)))
}
