package fleetsim

import (
	"net/netip"
	"slices"
	"time"
)

// take returns free addresses and prefixes from the node's block.
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
