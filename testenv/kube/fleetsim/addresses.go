package fleetsim

import (
	"net/netip"
	"time"
)

// take returns free addresses and prefixes of the node's block.
func (w *world) take(ips, prefixes int) []netip.Prefix {
	addrs := w.space.Find(ips, 0)
	w.mark(addrs, true)
	blocks := w.space.FindBlocks
	if w.node.profile.policy.IPv6 {
		blocks = func(n, _ int) []netip.Prefix { return w.space6.FindBlocks(n) }
	}
	found := blocks(prefixes, 0)
	w.mark(found, true)
	return append(addrs, found...)
}

// give returns addresses to the node's block.
func (w *world) give(cidrs []netip.Prefix) { w.mark(cidrs, false) }

func (w *world) mark(cidrs []netip.Prefix, taken bool) {
	for _, c := range cidrs {
		if c.Addr().Is4() {
			w.space.Mark(c, taken)
		} else {
			w.space6.Mark(c, taken)
		}
	}
}

// block6 is where the node's IPv6 prefixes come from.
func (n *node) block6() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(n.index >> 8), byte(n.index)}), 64)
}

// available returns how many addresses EC2 reports as free in a node's subnet. The first
// subnets of one zone run dry and recover repeatedly.
func (n *node) available(now time.Time) int {
	if n.has(FullSubnet) && !now.Before(n.sim.epoch.Add(-refusedFor)) {
		return 0
	}
	_, subnet := blockOf(n.index)
	if n.sim.opts.Sound {
		subnet = 0 // the minimum in subnets that never run dry
	}
	const turn = 40 * time.Minute
	phase := float64(now.Sub(n.sim.epoch)+time.Duration(subnet)*7*time.Minute) / float64(turn)
	phase -= float64(int(phase))
	if subnet%6 != 2 {
		return 20000 + int(8000*phase)
	}
	return max(0, int(1200*(1-1.4*phase)))
}
