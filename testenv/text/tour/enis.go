package tour

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
)

// enis returns the machine's ENIs with every address: assigned ones first, then cooling, then
// free.
func (m machine) enis(step int, now time.Time) []introspect.NodeENI {
	c := m.pool(step)
	var out []introspect.NodeENI
	first := netip.MustParsePrefix(zones[m.zone].cidr).Addr().As4()
	own := m.addresses()
	if m.name == Trunk {
		e := m.bare(0)
		for i := range c.held / 16 {
			prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, first[2] + 2, byte(16 * i)}), 28)
			e.CIDRs = append(e.CIDRs, m.block(prefix, i, c, now))
		}
		trunk := m.bare(7)
		trunk.Trunk = true
		out = append(out, e, trunk)
	} else {
		for i := range c.held {
			if i%m.slots() == 0 {
				out = append(out, m.bare(i/m.slots()))
			}
			a := own[i]
			e := &out[len(out)-1]
			e.CIDRs = append(e.CIDRs, introspect.NodeCIDR{CIDR: netip.PrefixFrom(a, 32), Addresses: []introspect.NodeAddress{m.record(a, i, c, now)}})
		}
	}
	p := introspect.Pool{ENIs: out, Cards: []introspect.CardSummary{{}}}
	p.Recount(now, 30*time.Second)
	return p.ENIs
}

// spaced returns the addresses of a machine that pages name: every other one of a /24.
func (m machine) spaced(n int) []netip.Addr {
	first := netip.MustParsePrefix(zones[m.zone].cidr).Addr().As4()
	out := make([]netip.Addr, n)
	for i := range out {
		out[i] = netip.AddrFrom4([4]byte{10, 0, first[2] + 1, byte(20 + i*2)})
	}
	return out
}

// most returns the maximum number of addresses that a machine holds.
func (m machine) most() int {
	most := 0
	for step := range Steps + 1 {
		most = max(most, m.pool(step).held)
	}
	return most
}

// addresses returns a machine's addresses, which no other machine has. Machines that no page
// names share the rest of their subnet.
func (m machine) addresses() []netip.Addr {
	const story = 5 // the first machines
	if m.i < story {
		return m.spaced(m.most())
	}
	taken := map[netip.Addr]bool{}
	for _, other := range machines() {
		taken[other.address()] = true
		if other.i < story && other.zone == m.zone {
			for _, a := range other.spaced(other.most()) {
				taken[a] = true
			}
		}
	}
	next := netip.MustParsePrefix(zones[m.zone].cidr).Addr()
	for range 16 {
		next = next.Next()
	}
	for _, other := range machines()[story:] {
		if other.zone != m.zone || other.i > m.i {
			continue
		}
		out := make([]netip.Addr, 0, other.most())
		for ; len(out) < cap(out); next = next.Next() {
			if !taken[next] {
				out = append(out, next)
			}
		}
		if other.i == m.i {
			return out
		}
	}
	return nil
}

// eniSummaries returns the ENIs as the daemon's summary shows them.
func (m machine) eniSummaries(c counts) []introspect.ENISummary {
	var out []introspect.ENISummary
	add := func(device, total int, flags ...string) {
		used := min(c.assigned, total)
		cooling := min(c.cooling, total-used)
		c.assigned, c.cooling = c.assigned-used, c.cooling-cooling
		out = append(out, introspect.ENISummary{ID: m.eni(device), Device: device, SubnetID: zones[m.zone].subnet, Total: total, Assigned: used, Cooling: cooling, Free: total - used - cooling, Flags: flags})
	}
	if m.name == Trunk {
		add(0, c.held, introspect.ENIFlagPrimary)
		add(7, 0, introspect.ENIFlagTrunk)
		return out
	}
	for device := 0; device*m.slots() < c.held; device++ {
		total := min(m.slots(), c.held-device*m.slots())
		if device == 0 {
			add(0, total, introspect.ENIFlagPrimary)
		} else {
			add(device, total)
		}
	}
	return out
}

func (m machine) bare(device int) introspect.NodeENI {
	table := 254
	if device > 0 {
		table = device + 1
	}
	return introspect.NodeENI{ID: m.eni(device), Device: device, SubnetID: zones[m.zone].subnet, Primary: device == 0, RouteTable: &table}
}

// block returns the n-th prefix with its used addresses.
func (m machine) block(prefix netip.Prefix, n int, c counts, now time.Time) introspect.NodeCIDR {
	cidr := introspect.NodeCIDR{CIDR: prefix}
	a := prefix.Addr()
	for i := range 16 {
		if at := n*16 + i; at < c.assigned+c.cooling {
			cidr.Addresses = append(cidr.Addresses, m.record(a, at, c, now))
		}
		a = a.Next()
	}
	return cidr
}

var apps = []string{"shop/cart-7d9f5b", "shop/checkout-6c8d4f", "data/ingest-5f7c9", "blog/front-84b6d7"}

// record returns the i-th address.
func (m machine) record(a netip.Addr, i int, c counts, now time.Time) introspect.NodeAddress {
	r := introspect.NodeAddress{Address: a, State: introspect.AddressFree}
	switch pod := m.podAt(i); {
	case i < c.assigned:
		r.State = introspect.AddressAssigned
		r.PodNamespace, r.PodName = pod.Namespace, pod.Name
		r.AssignedAt = at(time.Duration(26*60-31*i) * time.Minute / 4)
	case i < c.assigned+c.cooling:
		r.State = introspect.AddressCooling
		r.AssignedAt = at(time.Hour)
		freed := now.Add(-9 * time.Second)
		r.UnassignedAt = &freed
	}
	return r
}
