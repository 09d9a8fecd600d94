package warmpool

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// node is a simulated node: actions take effect at once and EC2 never refuses them. Breaking
// a limit fails the test.
type node struct {
	t      *testing.T
	limits Limits
	policy Policy
	now    time.Time

	enis     []*nodeENI // in attachment order
	pods     []netip.Addr
	attached int
	shrunk   time.Time
	waiting  []int
	subnets  []Subnet

	assigns, attaches, unassigns, detaches int
	log                                    []string
}

type nodeENI struct {
	ipam.ENI
	cidrs []*nodeCIDR
	next  int
}

type nodeCIDR struct {
	prefix  netip.Prefix
	records map[netip.Addr]ipam.AddressState
}

func (c *nodeCIDR) assigned() int {
	n := 0
	for _, r := range c.records {
		if r.Assigned() {
			n++
		}
	}
	return n
}

// newNode starts with a bare primary ENI.
func newNode(t *testing.T, limits Limits, policy Policy) *node {
	t.Helper()
	policy.Cooldown = 30 * time.Second
	policy.ScaleDownInterval = 30 * time.Second
	policy.ENIMinAge = 60 * time.Second
	n := &node{t: t, limits: limits, policy: policy, now: epoch, waiting: make([]int, len(limits.ENIsByCard))}
	n.attach(ipam.ENI{Primary: true})
	return n
}

func (n *node) attach(e ipam.ENI) *nodeENI {
	n.attached++
	e.ID = ipam.ENIID(fmt.Sprintf("eni-%02d", n.attached))
	e.AttachedAt = n.now
	one := &nodeENI{ENI: e}
	n.enis = append(n.enis, one)
	return one
}

// grow adds k CIDRs to an ENI. ENI m has 10.m.0.0/16, with prefixes from the top half and
// single addresses from the bottom half, and 2001:db8:m::/48 for the /80s of an IPv6
// cluster.
func (n *node) grow(e *nodeENI, k int, prefixes bool) {
	n.t.Helper()
	var number int
	if _, err := fmt.Sscanf(string(e.ID), "eni-%d", &number); err != nil {
		n.t.Fatal(err)
	}
	for range k {
		e.next++
		var p netip.Prefix
		if prefixes && n.policy.IPv6 {
			a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(number), 0, 0, 0, byte(e.next)})
			p = netip.PrefixFrom(a, 80)
		} else if prefixes {
			a := netip.AddrFrom4([4]byte{10, byte(number), byte(128 + e.next/16), byte(e.next % 16 * 16)})
			p = netip.PrefixFrom(a, 28)
		} else {
			a := netip.AddrFrom4([4]byte{10, byte(number), byte(e.next / 256), byte(e.next % 256)})
			p = netip.PrefixFrom(a, 32)
		}
		e.cidrs = append(e.cidrs, &nodeCIDR{prefix: p, records: map[netip.Addr]ipam.AddressState{}})
	}
	six := 0
	for _, c := range e.cidrs {
		if c.prefix.Addr().Is6() {
			six++
		}
	}
	if most := n.limits.IPv4PerENI - 1; len(e.cidrs)-six > most || six > most {
		n.t.Fatalf("%s holds %d CIDRs and %d /80s, its limit is %d each", e.ID, len(e.cidrs)-six, six, most)
	}
}

func (n *node) snapshot() Snapshot {
	s := Snapshot{Limits: n.limits, Waiting: n.waiting, LastScaleDown: n.shrunk, Subnets: n.subnets}
	for _, e := range n.enis {
		st := ipam.ENIState{ENI: e.ENI}
		for _, c := range e.cidrs {
			cs := ipam.CIDRState{Prefix: c.prefix, Assigned: c.assigned()}
			for _, a := range slices.SortedFunc(maps.Keys(c.records), netip.Addr.Compare) {
				cs.Records = append(cs.Records, c.records[a])
			}
			st.CIDRs = append(st.CIDRs, cs)
		}
		slices.SortFunc(st.CIDRs, func(a, b ipam.CIDRState) int { return a.Prefix.Addr().Compare(b.Prefix.Addr()) })
		s.Book.ENIs = append(s.Book.ENIs, st)
	}
	slices.SortFunc(s.Book.ENIs, func(a, b ipam.ENIState) int {
		return (a.Card-b.Card)*1000 + a.Device - b.Device
	})
	return s
}

func (n *node) plan() []Action { return Plan(n.snapshot(), n.policy, n.now) }

// step plans once and performs the plan.
func (n *node) step() (acted bool, wait Wait) {
	n.t.Helper()
	for _, a := range n.plan() {
		n.log = append(n.log, fmt.Sprintf("%s %T%+v", n.now.Sub(epoch), a, a))
		if w, ok := a.(Wait); ok {
			wait = w
			continue
		}
		acted = true
		n.do(a)
	}
	return acted, wait
}

func (n *node) do(a Action) {
	n.t.Helper()
	switch a := a.(type) {
	case AttachENI:
		n.attaches++
		onCard := 0
		for _, e := range n.enis {
			if e.Card != a.Card {
				continue
			}
			onCard++
			if e.Device == a.Device {
				n.t.Fatalf("device %d of card %d is taken", a.Device, a.Card)
			}
		}
		if onCard >= n.limits.ENIsByCard[a.Card] {
			n.t.Fatalf("card %d is full", a.Card)
		}
		e := n.attach(ipam.ENI{Card: a.Card, Device: a.Device, SubnetID: a.SubnetID})
		n.grow(e, a.IPs, false)
		n.grow(e, a.Prefixes, true)
	case AssignAddresses:
		n.assigns++
		n.grow(n.eni(a.ENI), a.Count, false)
	case AssignPrefixes:
		n.assigns++
		n.grow(n.eni(a.ENI), a.Count, true)
	case UnassignAddresses:
		n.unassigns++
		n.remove(a.ENI, a.CIDRs)
	case UnassignPrefixes:
		n.unassigns++
		n.remove(a.ENI, a.CIDRs)
	case DetachENI:
		n.detaches++
		n.shrunk = n.now
		e := n.eni(a.ENI)
		for _, c := range e.cidrs {
			n.mustBeUnused(c)
		}
		if e.Primary || e.Trunk || e.EFA || n.policy.IPv6 || n.now.Sub(e.AttachedAt) < n.policy.ENIMinAge {
			n.t.Fatalf("%s may not be detached", e.ID)
		}
		n.enis = slices.DeleteFunc(n.enis, func(o *nodeENI) bool { return o == e })
	}
}

func (n *node) mustBeUnused(c *nodeCIDR) {
	n.t.Helper()
	for _, r := range c.records {
		if r.Assigned() || r.Cooling(n.now, n.policy.Cooldown) {
			n.t.Fatalf("%s is released while %s is in use or cooling", c.prefix, r.Address)
		}
	}
}

func (n *node) remove(id ipam.ENIID, cidrs []netip.Prefix) {
	n.t.Helper()
	n.shrunk = n.now
	e := n.eni(id)
	for _, p := range cidrs {
		i := slices.IndexFunc(e.cidrs, func(c *nodeCIDR) bool { return c.prefix == p })
		if i < 0 {
			n.t.Fatalf("%s is not on %s", p, id)
		}
		n.mustBeUnused(e.cidrs[i])
		e.cidrs = slices.Delete(e.cidrs, i, i+1)
	}
}

func (n *node) eni(id ipam.ENIID) *nodeENI {
	n.t.Helper()
	for _, e := range n.enis {
		if e.ID == id {
			return e
		}
	}
	n.t.Fatalf("no ENI %s", id)
	return nil
}

// place gives a pod the first free address in attachment order.
func (n *node) place(card int) (netip.Addr, bool) {
	for _, e := range n.enis {
		if e.Card != card || e.Excluded || n.policy.CustomNetworking && e.Primary {
			continue
		}
		for _, c := range e.cidrs {
			if c.prefix.IsSingleIP() == n.policy.PrefixDelegation || c.prefix.Addr().Is4() == n.policy.IPv6 {
				continue
			}
			for a := c.prefix.Addr(); c.prefix.Contains(a); a = a.Next() {
				r := c.records[a]
				if r.Assigned() || r.Cooling(n.now, n.policy.Cooldown) {
					continue
				}
				r.Address, r.AssignedAt = a, n.now
				r.Sandbox = ipam.Sandbox{Network: "aws-cni", ContainerID: a.String(), IfName: "eth0"}
				c.records[a] = r
				n.pods = append(n.pods, a)
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}

// add starts a pod. It returns false if the node has no address for it.
func (n *node) add(card int) bool {
	n.t.Helper()
	if _, ok := n.place(card); ok {
		return true
	}
	n.waiting[card]++
	defer func() { n.waiting[card]-- }()
	for range 10 {
		acted, _ := n.step()
		if _, ok := n.place(card); ok {
			return true
		}
		if !acted {
			return false
		}
	}
	n.t.Fatalf("no end of actions for one waiting pod:\n%s", n.history())
	return false
}

// stop ends a pod.
func (n *node) stop(a netip.Addr) {
	for _, e := range n.enis {
		for _, c := range e.cidrs {
			if r, ok := c.records[a]; ok && r.Assigned() {
				c.records[a] = ipam.AddressState{Address: a, UnassignedAt: n.now}
			}
		}
	}
	n.pods = slices.DeleteFunc(n.pods, func(p netip.Addr) bool { return p == a })
}

// rounds is the maximum number of plans in a row that act at one time.
const rounds = 6

// act plans until nothing is left to do at this time, and returns the wait.
func (n *node) act() Wait {
	n.t.Helper()
	for range rounds {
		if acted, wait := n.step(); !acted {
			return wait
		}
	}
	n.t.Fatalf("still acting after %d plans in a row:\n%s", rounds, n.history())
	return Wait{}
}

// settle follows the waits until none is left.
func (n *node) settle() {
	n.t.Helper()
	for range 1000 {
		wait := n.act()
		if wait.Until.IsZero() {
			return
		}
		if !wait.Until.After(n.now) {
			n.t.Fatalf("waits for the past: %+v at %s", wait, n.now)
		}
		n.now = wait.Until
	}
	n.t.Fatalf("no fixed point:\n%s", n.history())
}

// rest checks that nothing happens for an hour: ticks of 5 s past all the timers, then
// minutes.
func (n *node) rest() {
	n.t.Helper()
	for i := range 100 {
		if n.now = n.now.Add(5 * time.Second); i > 40 {
			n.now = n.now.Add(55 * time.Second)
		}
		for _, a := range n.plan() {
			n.t.Fatalf("the pool is not at rest: %T%+v\n%s\n%+v\n%+v", a, a, n.history(), n.policy, n.snapshot())
		}
	}
}

func (n *node) history() string {
	return strings.Join(n.log[max(0, len(n.log)-20):], "\n")
}

// shape lists the CIDRs per ENI, primary first: "9,9".
func (n *node) shape() string {
	var s []string
	for _, e := range n.enis {
		s = append(s, fmt.Sprint(len(e.cidrs)))
	}
	return strings.Join(s, ",")
}

func (n *node) total() int {
	sum := 0
	for _, e := range n.enis {
		for _, c := range e.cidrs {
			sum += 1 << (32 - c.prefix.Bits())
		}
	}
	return sum
}
