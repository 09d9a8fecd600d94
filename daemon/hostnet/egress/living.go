package egress

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/iptables"
	"cnictl/daemon/netstate"
)

// Holder is a sandbox and the egress address that host-local leased to it.
type Holder struct {
	Address     netip.Addr
	ContainerID string
}

// ParseHolder reads a lease, a file named after its address. It returns false for the
// directory's other files, and for leases that no runtime's ADD can have made.
func ParseHolder(name, text string) (x Holder, ok bool) {
	address, err := netip.ParseAddr(name)
	if err != nil || address.Zone() != "" || address.Is4In6() {
		return x, false
	}
	id, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	id = strings.TrimSpace(id)
	return Holder{address, id}, netnames.ValidName(id)
}

// translation returns what a sandbox's chain and jump do, whatever node address and ports
// they were made with; false unless both are complete.
func translation(nat iptables.Table, network string, x Holder) (SNAT, bool) {
	c, _ := nat.Chain(Chain(x.Address.Is6(), network, x.ContainerID))
	if len(c.Rules) == 0 {
		return SNAT{}, false
	}
	words := iptables.Words(c.Rules[len(c.Rules)-1])
	var node netip.Addr
	random := RandomNone
	for i, w := range words {
		switch r := Random(w.Text); {
		case w.Text == "--to-source" && i+1 < len(words):
			node, _ = netip.ParseAddr(words[i+1].Text)
		case r == RandomHash, r == RandomFully:
			random = r
		}
	}
	s, err := Wanted(network, x.ContainerID, x.Address, node, random)
	return s, err == nil && s.In(nat)
}

// Host is the state of the host in the family of the egress: veths, addresses, and routes
// of the main table.
type Host struct {
	netstate.State
	NAT *iptables.Table // nil: not read
}

func (h *Host) route(to netip.Addr) (netstate.Route, bool) {
	dst := netstate.Only(to)
	i := slices.IndexFunc(h.Routes, func(r netstate.Route) bool { return r.Dst == dst && !r.Gateway.IsValid() })
	if i < 0 {
		return netstate.Route{}, false
	}
	return h.Routes[i], true
}

// Kinds of losses.
const (
	LostLink    = "link"    // it is down
	LostAddress = "address" // of the host's end
	LostRoute   = "route"
	LostChain   = "chain" // or the jump to it
)

// Loss is a missing object of a living pod, and what restores it.
type Loss struct {
	Holder Holder
	Kind   string
	Change netstate.Change // of all but LostChain
	SNAT   SNAT            // of LostChain
}

func (l Loss) String() string {
	if l.Kind == LostChain {
		return "egress chain " + l.SNAT.Chain + ", or the jump to it, was missing"
	}
	return l.Change.String() + ", of egress address " + l.Holder.Address.String()
}

const (
	// LossSettles is how long something must be missing before it counts as lost: a DEL
	// removes chain, route and lease in this order.
	LossSettles = 300 * time.Millisecond
	// leaseSettles is how long a pod is observed repeatedly: after its lease appeared,
	// until it was seen complete; and after something was restored for it, until its lease
	// has proved to stay.
	leaseSettles = 10 * time.Second
	leaseAgain   = time.Second
)

// Living remembers what pods with leases had, once it was seen complete, so that it does
// not interfere with an ADD under way. The zero value remembers none.
type Living struct {
	pods map[Holder]*seen
}

type seen struct {
	first   time.Time            // when the lease was first seen
	link    netstate.Link        // zero: not seen yet
	address netstate.Address     // of the link
	snat    SNAT                 // zero: not seen yet
	missing map[string]time.Time // by kind, since when
	made    time.Time            // when something was last restored for it
}

// Observe compares the pods that hold leases with the host. lost is what to restore now;
// ended is what was restored for pods whose leases have since gone, to be removed again.
// again is when to observe once more, with the NAT table; 0 if nothing is pending.
func (l *Living) Observe(now time.Time, network string, holders []Holder, h Host) (lost, ended []Loss, again time.Duration) {
	if l.pods == nil {
		l.pods = map[Holder]*seen{}
	}
	soon := func(d time.Duration) {
		if again == 0 || d < again {
			again = d
		}
	}
	held := make(map[Holder]bool, len(holders))
	for _, x := range holders {
		held[x] = true
		p := l.pods[x]
		if p == nil {
			p = &seen{first: now}
			l.pods[x] = p
		}
		p.learn(network, x, h)
		due, waits := p.split(now, p.losses(x, h))
		lost = append(lost, due...)
		switch {
		case waits:
			soon(LossSettles)
		case p.snat.Chain == "" && now.Sub(p.first) < leaseSettles, now.Sub(p.made) < leaseSettles:
			soon(leaseAgain)
		}
	}
	for x, p := range l.pods {
		if held[x] {
			continue
		}
		if !p.made.IsZero() {
			ended = append(ended, p.lostRoute(x))
			if p.snat.Chain != "" {
				ended = append(ended, Loss{Holder: x, Kind: LostChain, SNAT: p.snat})
			}
		}
		delete(l.pods, x)
	}
	return lost, ended, again
}

// learn records what exists.
func (p *seen) learn(network string, x Holder, h Host) {
	if r, ok := h.route(x.Address); ok {
		if link, ok := h.Link(r.Link); ok && link.Up() && link.Running() && !p.same(link) {
			p.link, p.address = link, netstate.Address{}
		}
	}
	for _, a := range h.Addresses {
		if p.link.Index != 0 && a.Link == p.link.Index && !p.address.Prefix.IsValid() && a.Prefix.Addr().IsLinkLocalUnicast() {
			p.address = a
		}
	}
	if h.NAT != nil {
		if s, ok := translation(*h.NAT, network, x); ok {
			p.snat = s
		}
	}
}

// losses returns what the pod had and now lacks. Without its link nothing else matters: the
// pod or its sandbox is gone.
func (p *seen) losses(x Holder, h Host) (out []Loss) {
	link, ok := h.Link(p.link.Index)
	if p.link.Index == 0 || !ok || !p.same(link) || link.Up() && !link.Running() {
		return nil
	}
	if !link.Up() { // first, because with the link down the kernel removes addresses and routes
		out = append(out, Loss{Holder: x, Kind: LostLink, Change: netstate.Change{Do: netstate.SetUp, Link: link}})
	}
	there := func(a netstate.Address) bool { return a.Link == link.Index && a.Prefix == p.address.Prefix }
	if p.address.Prefix.IsValid() && !slices.ContainsFunc(h.Addresses, there) {
		out = append(out, Loss{Holder: x, Kind: LostAddress, Change: netstate.Change{Do: netstate.AddAddress, Link: link, Address: p.address}})
	}
	if _, ok := h.route(x.Address); !ok {
		out = append(out, p.lostRoute(x))
	}
	_, pending := p.missing[LostChain]
	if p.snat.Chain != "" && (h.NAT == nil && pending || h.NAT != nil && !p.snat.In(*h.NAT)) {
		out = append(out, Loss{Holder: x, Kind: LostChain, SNAT: p.snat})
	}
	return out
}

// same reports whether a link is the pod's.
func (p *seen) same(l netstate.Link) bool { return l.Index == p.link.Index && l.Name == p.link.Name }

// lostRoute does not replace an existing route: that would belong to a new owner.
func (p *seen) lostRoute(x Holder) Loss {
	to := netstate.Direct(netstate.Only(x.Address), p.link.Index, netnames.MainTable)
	return Loss{Holder: x, Kind: LostRoute, Change: netstate.Change{Do: netstate.AddRoute, Link: p.link, Route: to}}
}

// split returns the losses that have lasted long enough, and whether others are still too
// recent.
func (p *seen) split(now time.Time, all []Loss) (due []Loss, waits bool) {
	was := p.missing
	p.missing = nil
	for _, x := range all {
		since, known := was[x.Kind]
		if !known {
			since = now
		}
		if p.missing == nil {
			p.missing = map[string]time.Time{}
		}
		p.missing[x.Kind] = since
		if now.Sub(since) >= LossSettles {
			due = append(due, x)
		} else {
			waits = true
		}
	}
	return due, waits
}

// Made records that something was restored for a pod.
func (l *Living) Made(now time.Time, x Holder) {
	if p := l.pods[x]; p != nil {
		p.made, p.missing = now, nil // the next loss must last, too
	}
}
