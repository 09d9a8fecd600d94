package whatif

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// Planner decides what a daemon does next: [warmpool.Plan] is ours, [PlanUpstream] is
// upstream's.
type Planner func(warmpool.Snapshot, warmpool.Policy, time.Time) []warmpool.Action

// EC2 simulates EC2 for one node.
type EC2 interface {
	// Subnet is the subnet of the node's interfaces, with its free addresses as EC2
	// reports them.
	Subnet(now time.Time) (id string, free int)
	// Takes returns how long an operation takes.
	Takes(op Operation) time.Duration
	// Refuses returns why an operation that ends now fails; "" if it succeeds.
	Refuses(op Operation) cause.Code
	// Attach creates the interface, with its addresses.
	Attach(a warmpool.AttachENI) (ipam.ENI, []netip.Prefix)
	// Take takes addresses or prefixes from the subnet, Give returns them to it.
	Take(ips, prefixes int) []netip.Prefix
	Give(cidrs []netip.Prefix)
}

// The least time that EC2 takes for an operation: an assignment usually takes less than a
// second, an interface up to ten. Up to twice as long is usual.
var takes = map[warmpool.PendingKind]time.Duration{
	warmpool.PendingAttach:  4 * time.Second,
	warmpool.PendingAssign:  900 * time.Millisecond,
	warmpool.PendingRelease: 700 * time.Millisecond,
	warmpool.PendingDetach:  6 * time.Second,
}

// Takes returns the least time that EC2 takes for an operation; jitter at most doubles it.
func Takes(kind warmpool.PendingKind) time.Duration { return takes[kind] }

const (
	// exhaustedFor is how long nothing is requested from a subnet without free addresses,
	// and throttledFor how long nothing is requested after a throttled request.
	exhaustedFor = 2 * time.Minute
	throttledFor = 10 * time.Second
	// settleRounds limits how many plans in a row Settle carries out.
	settleRounds = 256
)

// Operation is a request to EC2 in flight.
type Operation struct {
	Pending    warmpool.Pending
	Action     warmpool.Action
	Begun, End time.Time
}

// Pool is the pool of a node: its address book under a planner, on virtual time. The
// caller sets Now and Waiting, and calls Finish when an operation ends.
type Pool struct {
	Book     *ipam.Book
	Plan     Planner
	Policy   warmpool.Policy
	Limits   warmpool.Limits
	EC2      EC2
	Now      time.Time
	Others   int // attached interfaces that are not in the book
	Waiting  int // ADDs that found no address
	Cordoned bool

	Ops    []Operation
	Replan time.Time // when the planner must run again; zero: when something changes

	ENIBackoff    map[ipam.ENIID]time.Time
	AttachBackoff time.Time
	SubnetBackoff time.Time
	BackoffCause  cause.Code // of the most recent backoff
	LastScaleDown time.Time

	Err error // the first event that the book refused: a bug in this package
}

// Snapshot is what the planner sees.
func (p *Pool) Snapshot() warmpool.Snapshot {
	subnet, free := p.EC2.Subnet(p.Now)
	s := warmpool.Snapshot{
		Book: p.Book.Snapshot(), Limits: p.Limits,
		Subnets: []warmpool.Subnet{{ID: subnet, AvailableIPs: free, BackoffUntil: p.SubnetBackoff}},
		Waiting: make([]int, len(p.Limits.ENIsByCard)), OtherENIs: []int{p.Others},
		ENIBackoff: p.ENIBackoff, ENIBackoffCause: map[ipam.ENIID]cause.Code{},
		AttachBackoff: p.AttachBackoff, AttachBackoffCause: p.BackoffCause, LastScaleDown: p.LastScaleDown, Unschedulable: p.Cordoned,
	}
	s.Waiting[0] = p.Waiting
	for id := range p.ENIBackoff {
		s.ENIBackoffCause[id] = p.BackoffCause
	}
	for i := range p.Ops {
		s.Pending = append(s.Pending, p.Ops[i].Pending)
	}
	return s
}

// Start starts the operations that the planner wants and returns them.
func (p *Pool) Start() []Operation {
	p.Replan = time.Time{}
	before := len(p.Ops)
	for _, a := range p.Plan(p.Snapshot(), p.Policy, p.Now) {
		if wait, ok := a.(warmpool.Wait); ok {
			p.Replan = later(wait.Until, p.Now.Add(time.Second))
			continue
		}
		op := p.begin(a)
		op.End = p.Now.Add(p.EC2.Takes(op))
		p.Ops = append(p.Ops, op)
	}
	return p.Ops[before:]
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// begin starts an action and holds whatever it will give back.
func (p *Pool) begin(a warmpool.Action) Operation {
	op := Operation{Action: a, Begun: p.Now}
	switch a := a.(type) {
	case warmpool.AttachENI:
		subnet, _ := p.EC2.Subnet(p.Now)
		op.Pending = warmpool.Pending{Kind: warmpool.PendingAttach, Card: a.Card, Device: a.Device, IPs: a.IPs, Prefixes: a.Prefixes, SubnetID: subnet}
	case warmpool.AssignAddresses:
		op.Pending = warmpool.Pending{Kind: warmpool.PendingAssign, ENI: a.ENI, IPs: a.Count}
	case warmpool.AssignPrefixes:
		op.Pending = warmpool.Pending{Kind: warmpool.PendingAssign, ENI: a.ENI, Prefixes: a.Count}
	case warmpool.UnassignAddresses:
		p.Apply(ipam.HoldCIDRs{ID: a.ENI, CIDRs: a.CIDRs})
		op.Pending = warmpool.Pending{Kind: warmpool.PendingRelease, ENI: a.ENI, IPs: len(a.CIDRs)}
	case warmpool.UnassignPrefixes:
		p.Apply(ipam.HoldCIDRs{ID: a.ENI, CIDRs: a.CIDRs})
		op.Pending = warmpool.Pending{Kind: warmpool.PendingRelease, ENI: a.ENI, Prefixes: len(a.CIDRs)}
	case warmpool.DetachENI:
		p.Apply(ipam.HoldENI{ID: a.ENI})
		op.Pending = warmpool.Pending{Kind: warmpool.PendingDetach, ENI: a.ENI}
	}
	if k := op.Pending.Kind; k == warmpool.PendingRelease || k == warmpool.PendingDetach {
		p.LastScaleDown = p.Now
	}
	for _, e := range p.Book.Snapshot().ENIs {
		if e.ID == op.Pending.ENI {
			op.Pending.Card, op.Pending.Device = e.Card, e.Device
		}
	}
	return op
}

// Finish ends the i-th operation, successfully or not.
func (p *Pool) Finish(i int) (Operation, cause.Code) {
	op := p.Ops[i]
	p.Ops = slices.Delete(p.Ops, i, i+1)
	code := p.EC2.Refuses(op)
	if code == "" {
		p.carryOut(op.Action)
	} else {
		p.holdBack(op, code)
	}
	return op, code
}

// holdBack starts the backoff after a failure.
func (p *Pool) holdBack(op Operation, code cause.Code) {
	until := p.Now.Add(exhaustedFor)
	if code == cause.EC2Throttled {
		until = p.Now.Add(throttledFor)
	}
	p.BackoffCause = code
	if code == cause.SubnetExhausted {
		p.SubnetBackoff = until
	}
	if op.Pending.Kind == warmpool.PendingAttach {
		p.AttachBackoff = until
	} else {
		p.ENIBackoff[op.Pending.ENI] = until
	}
}

// carryOut applies an action to the book.
func (p *Pool) carryOut(a warmpool.Action) {
	switch a := a.(type) {
	case warmpool.AttachENI:
		p.Attach(a)
	case warmpool.AssignAddresses:
		p.Apply(ipam.AddCIDRs{ID: a.ENI, CIDRs: p.EC2.Take(a.Count, 0)})
	case warmpool.AssignPrefixes:
		p.Apply(ipam.AddCIDRs{ID: a.ENI, CIDRs: p.EC2.Take(0, a.Count)})
	case warmpool.UnassignAddresses:
		p.EC2.Give(a.CIDRs)
		p.Apply(ipam.RemoveCIDRs{ID: a.ENI, CIDRs: a.CIDRs})
	case warmpool.UnassignPrefixes:
		p.EC2.Give(a.CIDRs)
		p.Apply(ipam.RemoveCIDRs{ID: a.ENI, CIDRs: a.CIDRs})
	case warmpool.DetachENI:
		for _, e := range p.Book.Snapshot().ENIs {
			if e.ID != a.ENI {
				continue
			}
			freed := []netip.Prefix{netip.PrefixFrom(e.PrimaryIP, 32)}
			for _, c := range e.CIDRs {
				freed = append(freed, c.Prefix)
			}
			p.EC2.Give(freed)
		}
		p.Apply(ipam.DetachENI{ID: a.ENI})
		delete(p.ENIBackoff, a.ENI)
	}
}

// Attach adds an interface immediately.
func (p *Pool) Attach(a warmpool.AttachENI) {
	e, cidrs := p.EC2.Attach(a)
	p.Apply(ipam.AttachENI{ENI: e, CIDRs: cidrs})
}

// Kind returns the kind and family of pods' addresses.
func (p *Pool) Kind() (ipam.Kind, ipam.Family) {
	switch {
	case p.Policy.IPv6:
		return ipam.Prefixes, ipam.IPv6
	case p.Policy.PrefixDelegation:
		return ipam.Prefixes, ipam.IPv4
	}
	return ipam.SecondaryIPs, ipam.IPv4
}

// Assign assigns an address to a sandbox; false if none is free.
func (p *Pool) Assign(s ipam.Sandbox, pod ipam.Pod) (ipam.Assignment, bool) {
	kind, family := p.Kind()
	change, err := p.Book.Apply(p.Now, ipam.Assign{Sandbox: s, Pod: pod, Kind: kind, Family: family})
	if err != nil {
		if !errors.Is(err, ipam.ErrNoAddress) {
			p.refused(ipam.Assign{}, err)
		}
		return ipam.Assignment{}, false
	}
	return change.Assigned[0], true
}

// Settle carries out whatever the planner wants immediately, until it wants nothing, and
// calls done with each operation.
func (p *Pool) Settle(done func(Operation)) {
	for range settleRounds {
		idle := true
		for _, a := range p.Plan(p.Snapshot(), p.Policy, p.Now) {
			if _, ok := a.(warmpool.Wait); ok {
				continue
			}
			op := p.begin(a)
			p.carryOut(a)
			done(op)
			idle = false
		}
		if idle || p.Err != nil {
			return
		}
	}
}

// Apply applies an event to the book.
func (p *Pool) Apply(ev ipam.Event) {
	if _, err := p.Book.Apply(p.Now, ev); err != nil {
		p.refused(ev, err)
	}
}

func (p *Pool) refused(ev ipam.Event, err error) {
	if p.Err == nil {
		p.Err = fmt.Errorf("apply %T: %w", ev, err)
	}
}
