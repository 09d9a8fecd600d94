package whatif

import "time"

// Held is what a node's pool holds, and the requests that took.
type Held struct {
	ENIs      int // attached, including the trunk and a primary that serves no pods
	Slots     int // addresses or prefixes assigned to interfaces
	Addresses int // for pods: 16 for a prefix
	Pods      int // with an address
	Assigns   int // AssignPrivateIpAddresses calls
	NewENIs   int // interfaces created and attached
}

// Wasted is the number of addresses that no pod uses.
func (h Held) Wasted() int { return h.Addresses - h.Pods }

// SubnetAddresses is the number of addresses taken from subnets, including a primary
// address for each interface.
func (h Held) SubnetAddresses() int { return h.Addresses + h.ENIs }

// epoch is when a run starts on its own clock: at the start of a pass of upstream's
// daemon.
var epoch = time.Unix(0, 0).UTC()

// Grow fills an idle node with pods that arrive one at a time, each after the pool has
// settled. Pods that find no address keep waiting.
func Grow(s Settings, pods int, m Model) Held {
	n := newNode(s, m, &network{}, epoch, 0)
	n.fill(pods)
	return n.holds()
}

// fill adds pods one at a time, a minute apart: the pool settles meanwhile, and an earlier
// release does not delay the next one.
func (n *node) fill(pods int) {
	for range pods {
		n.Now = n.Now.Add(time.Minute)
		n.add()
		n.settle()
		n.serve()
	}
}

// holds returns what the node's pool holds now.
func (n *node) holds() Held {
	h := Held{ENIs: n.enis, Pods: n.assigned, Assigns: n.supply.network.calls.Assigns, NewENIs: n.supply.network.calls.NewENIs}
	snap := n.Book.Snapshot()
	for i := range snap.ENIs {
		h.Slots += len(snap.ENIs[i].CIDRs)
	}
	h.Addresses = n.supply.held - h.ENIs
	return h
}
