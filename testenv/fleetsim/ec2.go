package fleetsim

import (
	"fmt"
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

// operation is a request to EC2 in flight.
type operation struct {
	pending warmpool.Pending
	action  warmpool.Action
	begun   time.Time
	done    time.Time
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
		Subnets: []warmpool.Subnet{{ID: w.node.subnet, AvailableIPs: w.node.available(w.now), BackoffUntil: w.subnet}},
		Waiting: make([]int, cards), ENIBackoff: w.backoff, ENIBackoffCause: map[ipam.ENIID]cause.Code{}, AttachBackoff: w.attach, AttachBackoffCause: w.cause,
		LastScaleDown: w.shrunk, Unschedulable: w.node.cordoned,
	}
	for id := range w.backoff {
		s.ENIBackoffCause[id] = w.cause
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
	throttled := w.node.has(Throttled) || w.rnd.IntN(60) == 0 && !w.node.sim.opts.Sound
	if w.node.sim.opts.Sound || w.node.refusedByEC2() {
		ailment = 0
	}
	if w.node.has(Unauthorized) {
		ailment = 1
	}
	scarce := w.node.available(w.now) < max(1, op.pending.IPs+16*op.pending.Prefixes)
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
		case throttled:
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
		case throttled:
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
