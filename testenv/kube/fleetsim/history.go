package fleetsim

import (
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/subnethistory"
)

// historySince is the time of the node's first count; nil if it keeps none.
func (n *node) historySince() *time.Time {
	if n.sim.opts.History == 0 {
		return nil
	}
	share := float64(n.sim.opts.Nodes-n.index) / float64(n.sim.opts.Nodes)
	return new(n.sim.epoch.Add(-time.Duration(share * float64(n.sim.opts.History))).Truncate(time.Second).UTC())
}

// history returns /v1/subnet-history. Before the simulation the subnet lost 10 addresses an hour.
func (n *node) history() introspect.NodeSubnetHistory {
	var h subnethistory.History
	since := n.historySince()
	if since == nil {
		return h.Document()
	}
	first := n.available(n.sim.epoch)
	for at := *since; at.Before(n.sim.epoch); at = at.Add(subnethistory.Apart) {
		h.Note(at, n.subnet, first+int(10*n.sim.epoch.Sub(at).Hours()))
	}
	return h.Document()
}
