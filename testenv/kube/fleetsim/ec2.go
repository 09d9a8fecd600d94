package fleetsim

import (
	"fmt"
	"net/netip"
	"time"

	"cnictl/capacity/whatif"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// addPatience is how long kubelet waits for an ADD.
const addPatience = 15 * time.Second

// fakeEC2 simulates EC2 for a node's pool.
type fakeEC2 struct{ w *world }

func (f fakeEC2) Subnet(now time.Time) (id string, free int) {
	return f.w.node.subnet, f.w.node.available(now)
}

func (f fakeEC2) Takes(op whatif.Operation) time.Duration {
	takes := whatif.Takes(op.Pending.Kind)
	return takes + time.Duration(f.w.rnd.Int64N(int64(takes)))
}

func (f fakeEC2) Take(ips, prefixes int) []netip.Prefix { return f.w.take(ips, prefixes) }

func (f fakeEC2) Give(cidrs []netip.Prefix) { f.w.give(cidrs) }

// count updates the number of waiting pods.
func (w *world) count() {
	w.Waiting = 0
	for _, pod := range w.pods {
		if pod.address == (netip.Addr{}) {
			w.Waiting++
		}
	}
}

// snapshot returns the planner's input.
func (w *world) snapshot() warmpool.Snapshot {
	w.count()
	return w.Snapshot()
}

// plan starts the operations that the planner wants.
func (w *world) plan() {
	w.count()
	for _, op := range w.Start() {
		w.note(introspect.Event{Kind: introspect.EventActionStarted, ENIID: string(op.Pending.ENI), Reason: string(op.Action.Why()), Message: fmt.Sprint(op.Action)})
	}
	w.check()
}

// check panics on a bug in the simulator.
func (w *world) check() {
	if w.Err != nil {
		panic(fmt.Sprintf("fleetsim: node %s: %v", w.node.name, w.Err))
	}
}

// finish ends an operation, successfully or not.
func (w *world) finish(i int) {
	op, code := w.Finish(i)
	w.check()
	action := w.calls[call(op, code)]
	if action == nil {
		action = &introspect.EC2Calls{Action: call(op, code)}
		w.calls[action.Action] = action
	}
	action.Calls++
	at := w.Now
	action.LastAt = &at
	id, reason := string(op.Pending.ENI), string(op.Action.Why())
	if code != "" {
		action.Errors++
		w.fail(action.Action, code, code.Title())
		w.note(introspect.Event{Kind: introspect.EventActionFailed, ENIID: id, Cause: string(code), Reason: reason, Message: code.Title()})
		w.note(introspect.Event{Kind: introspect.EventBackoffStarted, ENIID: id, Cause: string(code)})
		return
	}
	if op.Pending.Kind == warmpool.PendingDetach {
		w.note(introspect.Event{Kind: introspect.EventENIDetached, ENIID: id})
	}
	took := w.Now.Sub(op.Begun).Milliseconds()
	w.note(introspect.Event{Kind: introspect.EventActionDone, ENIID: id, Reason: reason, DurationMS: &took})
}

// Refuses returns why EC2 refuses an operation, or "".
func (f fakeEC2) Refuses(op whatif.Operation) cause.Code {
	w := f.w
	ailment := w.node.sim.hash(w.node.index, "ailment") % 120
	throttled := w.node.has(Throttled) || w.rnd.IntN(60) == 0 && !w.node.sim.opts.Sound
	if w.node.sim.opts.Sound || w.node.refusedByEC2() {
		ailment = 0
	}
	if w.node.has(Unauthorized) {
		ailment = 1
	}
	scarce := w.node.available(w.Now) < max(1, op.Pending.IPs+16*op.Pending.Prefixes)
	if w.node.profile.policy.IPv6 {
		scarce = false
	}
	grows := op.Pending.Kind == warmpool.PendingAttach || op.Pending.Kind == warmpool.PendingAssign
	switch {
	case !grows:
		return ""
	case ailment == 1:
		return cause.EC2Unauthorized
	case scarce:
		return cause.SubnetExhausted
	case ailment == 2 && op.Pending.Kind == warmpool.PendingAttach:
		return cause.ENIAttachLimit
	case ailment == 3 && op.Pending.Kind == warmpool.PendingAssign && op.Pending.Prefixes > 0:
		return cause.SubnetFragmented
	case throttled:
		return cause.EC2Throttled
	}
	return ""
}

// call returns the EC2 action that ended an operation.
func call(op whatif.Operation, code cause.Code) string {
	switch op.Pending.Kind {
	case warmpool.PendingAttach:
		if code == cause.ENIAttachLimit {
			return "AttachNetworkInterface"
		}
		return "CreateNetworkInterface"
	case warmpool.PendingAssign:
		return "AssignPrivateIpAddresses"
	case warmpool.PendingRelease:
		return "UnassignPrivateIpAddresses"
	}
	return "DetachNetworkInterface"
}

// Attach creates an ENI: the first is the primary one; if pods can have security groups, the
// second is the trunk.
func (f fakeEC2) Attach(a warmpool.AttachENI) (ipam.ENI, []netip.Prefix) {
	w, n := f.w, f.w.node
	first := w.enis == 0
	w.enis++
	e := ipam.ENI{
		ID: ipam.ENIID(fmt.Sprintf("eni-0%016x", n.sim.hash(n.index, fmt.Sprint("eni", w.enis)))), Card: a.Card, Device: a.Device,
		MAC: fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", byte(n.index>>8), byte(n.index), byte(w.enis>>8), byte(w.enis), a.Card), Primary: first,
		Trunk: n.profile.podENI && w.enis == 2, SubnetID: n.subnet, Subnet: n.prefix, RouteTable: 254, AttachedAt: w.Now,
	}
	if first {
		e.PrimaryIP = n.ip
		w.space.Mark(netip.PrefixFrom(n.ip, 32), true)
	} else {
		e.PrimaryIP = w.take(1, 0)[0].Addr()
		if e.RouteTable = a.Device + 1; a.Card > 0 {
			e.RouteTable = a.Card*100 + a.Device + 1
		}
	}
	if n.profile.policy.CustomNetworking && !first {
		e.SubnetID = fmt.Sprintf("subnet-0%016x", 0xc057000+n.index%len(zones))
	}
	w.note(introspect.Event{Kind: introspect.EventENIAttached, ENIID: string(e.ID), Card: &e.Card, Device: &e.Device, SubnetID: e.SubnetID})
	return e, w.take(a.IPs, a.Prefixes)
}

// settle carries out the planner's actions immediately until none is left.
func (w *world) settle() {
	w.count()
	w.Settle(func(whatif.Operation) {})
	w.check()
}
