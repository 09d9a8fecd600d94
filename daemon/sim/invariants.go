package sim

import (
	"cnictl/daemon/resync"
)

// This file is what must hold after every turn of a keeper. What EC2 must never be
// asked for is checked where it is asked (refusals.go), what an answer promises where it
// is given (plugin.go).

// inspect checks the node's keeper.
func (n *node) inspect() {
	p, w := n.process, n.w
	if p == nil || p.keeper == nil {
		return
	}
	if w.Scenario.Pace != nil && w.stats.Turns%checkEvery != 0 {
		return // nothing goes wrong here but throttling, and there are many nodes
	}
	k := p.keeper
	for _, o := range n.pods {
		s := o.box
		if s == nil || !s.alive || s.lost {
			continue
		}
		a, held := k.AtAddress(s.address)
		switch {
		case !held:
			w.violate("none lost", "%s: the book has lost %v of living %s", n.name, s.address, s)
		case a.Sandbox != s.key() && a.Sandbox != resync.Recovered(o.link):
			w.violate("none lost", "%s: %v of living %s is %s's in the book", n.name, s.address, s, a.Sandbox.ContainerID)
		}
	}
	for _, r := range p.requests {
		if w.clock > r.deadline {
			w.violate("answered in time", "%s: %s is not answered", n.name, r.what)
		}
	}
	if w.stats.Turns%checkEvery == 0 || w.Scenario.Strict {
		n.checkBook()
	}
}

// checkEvery spaces walks through the whole book: they cost more than all else. In a
// strict world there is one after each turn.
const checkEvery = 32

func (n *node) checkBook() {
	if err := n.process.keeper.Check(); err != nil {
		n.w.violate("book", "%s: %v", n.name, err)
	}
}

// livingOn lists the sandboxes that need an ENI's addresses.
func (w *World) livingOn(x *eni) []*sandbox {
	var out []*sandbox
	if x.node == nil {
		return nil
	}
	for _, s := range x.node.living() {
		if !s.cut && x.has(s.address) {
			out = append(out, s)
		}
	}
	return out
}

// living lists the sandboxes that have an address.
func (n *node) living() []*sandbox {
	var out []*sandbox
	for _, p := range n.pods {
		if p.box != nil && p.box.alive {
			out = append(out, p.box)
		}
	}
	return out
}
