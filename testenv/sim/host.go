package sim

import (
	"context"
	"net/netip"
	"time"

	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// This file simulates a daemon's calls to its node.

const (
	linkWaitLimit  = 2 * time.Minute // for the link of an attached ENI
	startLinkLimit = time.Second     // for the links of ENIs that a start finds
)

// local carries out a call to the node, which takes a moment.
func local[T any](ctx context.Context, c *calls, what string, effect func() T) (out T, err error) {
	w := c.p.node.w
	finished := w.awaitIn(scopeOf(ctx), func(done func()) {
		w.after(w.dice.faults.span(50*time.Microsecond, 2*time.Millisecond), func() {
			if w.strike(w.Scenario.HostFaults, FaultKernel) {
				err = errKernel
				w.tracef("%s: %s: %v", c.p.node.name, what, err)
			} else {
				out = effect()
			}
			c.p.mayDie(w.Scenario.CrashAtCall)
			done()
		})
	})
	if !finished {
		return out, errEnded
	}
	return out, err
}

func (c *calls) Interfaces(ctx context.Context) ([]resync.Interface, error) {
	w := c.p.node.w
	var out []resync.Interface
	var err error
	finished := w.awaitIn(scopeOf(ctx), func(done func()) {
		w.after(w.dice.faults.span(time.Millisecond, 30*time.Millisecond), func() {
			if w.strike(w.Scenario.HostFaults, FaultMetadata) {
				err = errMetadata
			} else {
				out = c.p.node.metadata.list()
			}
			done()
		})
	})
	if !finished {
		return nil, errEnded
	}
	return out, err
}

// linkPoll is how often the model checks whether a link has appeared.
const linkPoll = 50 * time.Millisecond

func (c *calls) SetUpENI(ctx context.Context, e ipam.ENI) error {
	return c.setUp(ctx, e, linkWaitLimit)
}

func (c *calls) setUp(ctx context.Context, e ipam.ENI, limit time.Duration) error {
	k := &c.p.node.kernel
	end := c.p.node.w.clock + limit
	for !k.plugged[e.ID] {
		if c.p.node.w.clock >= end {
			return errLinkMissing
		}
		if err := c.Sleep(ctx, linkPoll); err != nil {
			return err
		}
	}
	_, err := local(ctx, c, "set up "+string(e.ID), func() none {
		k.tables[e.PrimaryIP] = e.RouteTable
		return none{}
	})
	if err != nil {
		return &keeper.Failure{Err: err}
	}
	return nil
}

func (c *calls) TeardownENI(ctx context.Context, primary netip.Addr) error {
	_, err := local(ctx, c, "tear down an ENI", func() none {
		delete(c.p.node.kernel.tables, primary)
		return none{}
	})
	return err
}

func (c *calls) PodRoutes(ctx context.Context) ([]resync.PodRoute, error) {
	return local(ctx, c, "list pod routes", c.p.node.kernel.podRoutes)
}

func (c *calls) PodLinks(ctx context.Context) (map[string]int, error) {
	return local(ctx, c, "list links", c.p.node.kernel.hostLinks)
}

func (c *calls) DropPod(ctx context.Context, a netip.Addr) error {
	_, err := local(ctx, c, "drop rules", func() none {
		c.p.node.kernel.drop(c.p.node, a)
		return none{}
	})
	return err
}

// DeleteFlows is a pass over connection tracking. The model has no entries: it counts the
// passes of each address, and knows the living pods whose entries must stay.
func (c *calls) DeleteFlows(ctx context.Context, of func(netip.Addr) bool) (int, error) {
	n := c.p.node
	return local(ctx, c, "delete connection tracking entries", func() int {
		for _, s := range n.living() {
			if s.linked && !s.cut && of(s.address) {
				n.w.violate("none lost", "%s deletes the connections of %v, the address of living %s", n.name, s.address, s)
			}
		}
		for a, rest := range n.rested {
			if of(a) {
				rest.passes++
				n.rested[a] = rest
			}
		}
		return 0
	})
}

// drop removes an address's rules for the daemon. A living pod must not have the address.
func (k *kernel) drop(n *node, a netip.Addr) {
	if s := n.held[a]; s != nil && s.linked && !s.cut {
		k.w.violate("none lost", "%s removes the rules of %v, the address of living %s", n.name, a, s)
	}
	k.disconnect(a)
}

// FixPodTable routes a pod's traffic through a table.
func (c *calls) FixPodTable(ctx context.Context, a netip.Addr, table int) error {
	_, err := local(ctx, c, "fix the table of a pod", func() none {
		if r := c.p.node.kernel.routes[a]; r != nil {
			r.toRule, r.table = true, table
		}
		return none{}
	})
	return err
}

const vethPrefix = "eni"
