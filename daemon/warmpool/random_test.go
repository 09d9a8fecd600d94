package warmpool

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// dice yields a number in [0, n). Tests feed it from a seed, the fuzzer from bytes.
type dice func(n int) int

func seeded(seed uint64) dice {
	r := rand.New(rand.NewPCG(seed, 7))
	return r.IntN
}

func fromBytes(data []byte) dice {
	return func(n int) int {
		if len(data) == 0 || n <= 1 {
			return 0
		}
		v := int(data[0])
		data = data[1:]
		if n > 256 && len(data) > 0 {
			v = v<<8 | int(data[0])
			data = data[1:]
		}
		return v % n
	}
}

// one returns true once in n times.
func (d dice) one(n int) bool { return d(n) == n-1 }

// randomPolicy draws targets small enough to be met and missed often.
func randomPolicy(d dice) Policy {
	p := Policy{WarmENI: d(4), PrefixDelegation: d.one(2), CustomNetworking: d.one(4), MultiNIC: d.one(2),
		ReserveTrunkSlot: d.one(4), ManageUnschedulable: d.one(2)}
	if d.one(2) {
		p.WarmIP = d(8)
	}
	if d.one(2) {
		p.MinIP = d(30)
	}
	if d.one(5) {
		p.IPv6, p.PrefixDelegation, p.CustomNetworking = true, true, false
	}
	p.WarmPrefix = d(4)
	if d.one(3) {
		p.MaxENI = 1 + d(4)
	}
	if d.one(3) {
		p.MaxPods = 1 + d(40)
	}
	return p
}

// randomNode draws a node in any state that a pool may reach: half-filled ENIs, both kinds
// of CIDRs, pods, addresses in cooldown.
func randomNode(t *testing.T, d dice) *node {
	limits := Limits{IPv4PerENI: 2 + d(8)}
	for range 1 + d(3) {
		limits.ENIsByCard = append(limits.ENIsByCard, 1+d(5))
	}
	n := newNode(t, limits, randomPolicy(d))
	n.enis[0].Excluded = d.one(8)
	for card, most := range limits.ENIsByCard {
		for device := range most {
			if card == 0 && device == 0 || d.one(2) {
				continue
			}
			e := n.attach(ipam.ENI{Card: card, Device: device, Excluded: d.one(8), EFA: d.one(8)})
			e.Trunk = card == 0 && d.one(8)
			e.AttachedAt = n.now.Add(-time.Duration(d(120)) * time.Second)
		}
	}
	for _, e := range n.enis {
		n.grow(e, d(limits.IPv4PerENI), n.policy.PrefixDelegation)
		if d.one(4) {
			n.grow(e, d(limits.IPv4PerENI-len(e.cidrs)), !n.policy.PrefixDelegation)
		}
		for _, c := range e.cidrs {
			randomRecords(n, d, c)
		}
	}
	if d.one(2) {
		n.shrunk = n.now.Add(-time.Duration(d(60)) * time.Second)
	}
	return n
}

func randomRecords(n *node, d dice, c *nodeCIDR) {
	a := c.prefix.Addr()
	for range d(3) {
		if !c.prefix.Contains(a) {
			return
		}
		r := ipam.AddressState{Address: a}
		if d.one(3) {
			r.UnassignedAt = n.now.Add(-time.Duration(d(60)) * time.Second)
		}
		if d.one(2) {
			r.Sandbox = ipam.Sandbox{Network: "aws-cni", ContainerID: a.String(), IfName: "eth0"}
			r.AssignedAt = n.now.Add(-time.Hour)
		}
		if r.Assigned() && d.one(4) {
			r.AssignedAt = n.now.Add(-time.Second)
		}
		if r.Assigned() {
			n.pods = append(n.pods, a)
		}
		if r.Assigned() || !r.UnassignedAt.IsZero() {
			c.records[a] = r
		}
		a = a.Next()
	}
}

// randomSnapshot adds a node's surroundings to its snapshot: operations in flight,
// back-offs, subnets, foreign ENIs, waiting ADDs.
func randomSnapshot(d dice, n *node) Snapshot {
	s := n.snapshot()
	s.Waiting = make([]int, len(n.limits.ENIsByCard))
	for card := range s.Waiting {
		if d.one(2) {
			s.Waiting[card] = d(40)
		}
	}
	soon := func() time.Time { return n.now.Add(time.Duration(d(60)-30) * time.Second) }
	if d.one(2) {
		for range n.limits.ENIsByCard {
			s.Expected = append(s.Expected, d(40)-4)
		}
	}
	s.Terminating, s.Unschedulable = d.one(16), d.one(8)
	if d.one(4) {
		s.AttachBackoff = soon()
	}
	if d.one(4) {
		s.ReleaseBackoff = soon()
	}
	s.ENIBackoff = map[ipam.ENIID]time.Time{}
	s.ENIBackoffCause = map[ipam.ENIID]cause.Code{}
	for i := range s.Book.ENIs {
		e := &s.Book.ENIs[i]
		e.SubnetID = []string{"", "subnet-a", "subnet-b", "subnet-z"}[d(4)]
		if d.one(8) {
			s.ENIBackoff[e.ID] = soon()
			s.ENIBackoffCause[e.ID] = []cause.Code{"", cause.EC2Throttled}[d(2)]
		}
		randomPending(d, n, &s, e)
	}
	for range d(3) {
		card := d(len(n.limits.ENIsByCard))
		s.Pending = append(s.Pending, Pending{Kind: PendingAttach, Card: card, Device: 10 + len(s.Pending),
			IPs: d(n.limits.IPv4PerENI), Prefixes: d(2) * d(n.limits.IPv4PerENI)})
	}
	for card := range n.limits.ENIsByCard {
		s.OtherENIs = append(s.OtherENIs, d(2)*d(3))
		s.OtherDevices = append(s.OtherDevices, []int{d(6), d(6)}[:min(2, s.OtherENIs[card])])
		s.Unmanaged = append(s.Unmanaged, card > 0 && d.one(8))
	}
	for _, id := range []string{"subnet-a", "subnet-b", "subnet-c"}[:d(4)] {
		sub := Subnet{ID: id, AvailableIPs: d(100) - 1}
		if d.one(4) {
			sub.BackoffUntil = soon()
		}
		if d.one(4) {
			sub.PrefixBackoff = soon()
		}
		s.Subnets = append(s.Subnets, sub)
	}
	if d.one(4) {
		s.Misplaced = map[ipam.ENIID]int{s.Book.ENIs[d(len(s.Book.ENIs))].ID: 1 + d(2)}
	}
	s.NoUsableSubnet = len(s.Subnets) == 0 && d.one(4)
	if d.one(8) {
		s.Book.Unplaced = []ipam.Assignment{{Address: netip.MustParseAddr("10.200.0.9")}}
	}
	if d.one(3) {
		randomStated(d, n, &s)
	}
	return s
}

// randomStated lets EC2 state limits below the type's, of which some may be tried again.
func randomStated(d dice, n *node, s *Snapshot) {
	ofType := s.Limits
	for card, most := range ofType.ENIsByCard {
		if d.one(2) {
			s.Stated, _ = s.Stated.ENIRefused(ofType, card, d(most), n.now.Add(-time.Duration(d(120))*time.Minute))
		}
	}
	if !n.policy.IPv6 && d.one(2) {
		s.Stated, _ = s.Stated.SlotsRefused(ofType, d(ofType.Slots()), n.now.Add(-time.Duration(d(120))*time.Minute))
	}
	s.Limits = s.Stated.Lower(ofType)
}

func randomPending(d dice, n *node, s *Snapshot, e *ipam.ENIState) {
	switch d(14) {
	case 12:
		e.QuarantinedAt = n.now.Add(-time.Minute)
	case 13:
		e.CIDRs = slices.Clone(e.CIDRs)
		for i := range e.CIDRs {
			if d.one(2) {
				e.CIDRs[i].QuarantinedAt = n.now.Add(-time.Minute)
			}
		}
	case 0:
		s.Pending = append(s.Pending, Pending{Kind: PendingAssign, ENI: e.ID, Card: e.Card, IPs: d(3), Prefixes: d(2)})
	case 1:
		e.CIDRs = slices.Clone(e.CIDRs)
		for i := range e.CIDRs {
			if c := &e.CIDRs[i]; c.Assigned == 0 && d.one(2) {
				c.Held = true
			}
		}
		s.Pending = append(s.Pending, Pending{Kind: PendingRelease, ENI: e.ID, Card: e.Card})
	case 2:
		used := slices.ContainsFunc(e.CIDRs, func(c ipam.CIDRState) bool { return c.Assigned > 0 })
		if !e.Primary && !used {
			e.Held = true
			s.Pending = append(s.Pending, Pending{Kind: PendingDetach, ENI: e.ID, Card: e.Card})
		}
	}
}
