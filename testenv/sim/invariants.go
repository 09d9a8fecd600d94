package sim

import (
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/resync"
)

// This file checks what must hold after every turn of a keeper. Requests are checked when EC2
// receives them (refusals.go), replies when the plugin receives them (plugin.go).

// inspect checks the node's keeper.
func (n *node) inspect() {
	p, w := n.process, n.w
	if p == nil || p.keeper == nil {
		return
	}
	if w.Scenario.Pace != nil && w.stats.Turns%checkEvery != 0 {
		return // a fleet has many nodes, and no faults but throttling
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
	n.inspectWaiting()
	for _, r := range p.requests {
		if w.clock > r.deadline {
			w.violate("answered in time", "%s: %s is not answered", n.name, r.what)
		}
	}
	if w.stats.Turns%checkEvery == 0 || w.Scenario.Strict {
		n.checkBook()
	}
}

// coolingPatience is how long an ADD may wait for addresses in cooldown before the pool grows
// for it.
const coolingPatience = 2 * time.Second

// inspectWaiting checks that no ADD waits for addresses in cooldown while the pool could
// grow, that is, while the instance, max-pods and the subnets have room.
func (n *node) inspectWaiting() {
	k, w := n.process.keeper, n.w
	if k.Waiting() == 0 {
		n.cooling = 0
		return
	}
	code, text, _ := k.Blocked(w.now(), false)
	if code != cause.AddressesCooling || !n.inOrder() || !n.couldGrow() {
		n.cooling = 0
		return
	}
	if n.cooling == 0 {
		n.cooling = w.clock
	}
	if w.clock-n.cooling > coolingPatience {
		w.violate("waits for EC2 only", "%s: an ADD has waited %v for cooling addresses, and EC2 has addresses: %s", n.name, w.clock-n.cooling, text)
	}
}

// inOrder reports whether the daemon knows all ENIs and addresses of the node, all of them
// are usable and no operation is in progress.
func (n *node) inOrder() bool {
	s := n.process.keeper.State(n.w.now())
	if len(s.Operations) > 0 || s.OtherENIs[0] > 0 || len(s.Book.ENIs) != len(n.attached) {
		return false
	}
	for i := range s.Book.ENIs {
		e := &s.Book.ENIs[i]
		x := n.attached[e.ID]
		if x == nil || x.AttachmentStatus != resync.AttachmentAttached || e.Held || e.Quarantined() || 1+len(e.CIDRs) != x.slots() || e.Excluded != n.excludes(x) {
			return false
		}
		for _, c := range e.CIDRs {
			if c.Held || c.Quarantined() {
				return false
			}
		}
	}
	return true
}

// checkEvery is the number of turns between checks of the whole book, which cost more than
// everything else. A strict world checks it after every turn.
const checkEvery = 32

func (n *node) checkBook() {
	if err := n.process.keeper.Check(); err != nil {
		n.w.violate("book", "%s: %v", n.name, err)
	}
}

// livingOn returns the sandboxes that use an address of an ENI.
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

// living returns the sandboxes that have an address.
func (n *node) living() []*sandbox {
	var out []*sandbox
	for _, p := range n.pods {
		if p.box != nil && p.box.alive {
			out = append(out, p.box)
		}
	}
	return out
}
