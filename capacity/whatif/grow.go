package whatif

import "time"

// Held is what a node's pool holds, and the requests that it took.
type Held struct {
	ENIs      int // attached, with the trunk and a primary that serves no pods
	Slots     int // addresses or prefixes assigned to interfaces
	Addresses int // that pods can have: 16 for a prefix
	Pods      int // that have one
	Assigns   int // AssignPrivateIpAddresses calls
	NewENIs   int // interfaces created and attached
}

// Wasted are addresses that no pod has.
func (h Held) Wasted() int { return h.Addresses - h.Pods }

// SubnetAddresses are those taken from subnets, with a primary address for each interface.
func (h Held) SubnetAddresses() int { return h.Addresses + h.ENIs }

// epoch is when a run begins on its own clock: at the beginning of a pass of upstream's
// daemon.
var epoch = time.Unix(0, 0).UTC()

// Grow fills an idle node with pods that come one at a time, each after the pool has settled.
// Pods that find no address wait, and have none.
func Grow(s Settings, pods int, m Model) Held {
	n := newNode(s, m, &network{}, epoch, 0)
	n.fill(pods)
	return n.holds()
}

// fill lets pods come one at a time, a minute apart: the pool settles meanwhile, and what it
// gives back is not held back by what it gave back before.
func (n *node) fill(pods int) {
	for range pods {
		n.Now = n.Now.Add(time.Minute)
		n.add()
		n.settle()
		n.serve()
	}
}

// holds is what the node's pool holds now.
func (n *node) holds() Held {
	h := Held{ENIs: n.enis, Pods: n.assigned, Assigns: n.supply.network.calls.Assigns, NewENIs: n.supply.network.calls.NewENIs}
	snap := n.Book.Snapshot()
	for i := range snap.ENIs {
		h.Slots += len(snap.ENIs[i].CIDRs)
	}
	h.Addresses = n.supply.held - h.ENIs
	return h
}
