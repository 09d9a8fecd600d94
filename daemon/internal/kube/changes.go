package kube

import (
	"sync"

	"cnictl/daemon/cluster"
)

// Changes are callbacks of Run, called from one goroutine and never after Run returned.
// Several changes of a kind in quick succession are reported once, with the last state.
// Each function may be nil.
type Changes struct {
	Node       func(cluster.Node)
	ENIConfigs func()
	CNINode    func(node cluster.CNINode, exists bool)
	Pods       func()
	// Reached reports that the API server answers, with its version; Lost that it does
	// not. The caches keep serving during an outage.
	Reached func(version string)
	Lost    func(error)
	// Away reports, once per outage and after Lost, that a probe failed which was sent
	// AwayAfter or more into the outage.
	Away func(error)
}

// change is a set of kinds of changes.
type change uint

const (
	reachChanged change = 1 << iota
	awayChanged
	nodeChanged
	podsChanged
	cniNodeChanged
	eniConfigsChanged
)

// changes collects the changes to report.
type changes struct {
	mu    sync.Mutex
	open  change
	ready chan struct{} // holds one token while something is open
}

func newChanges() *changes { return &changes{ready: make(chan struct{}, 1)} }

// note adds a change. It does not block.
func (c *changes) note(what change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open |= what
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// take returns the open changes and clears them.
func (c *changes) take() change {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.open
	c.open = 0
	return open
}

// deliver reports the open changes, reachability first, as it explains the rest.
func (c *Client) deliver(on Changes) {
	open := c.changes.take()
	if open&reachChanged != 0 {
		c.deliverReach(on)
	}
	if open&awayChanged != 0 && on.Away != nil {
		if version, err := c.reach.state(); version == "" {
			on.Away(err)
		}
	}
	if open&nodeChanged != 0 && on.Node != nil {
		if n, ok, _ := c.nodes.get(c.opts.NodeName); ok {
			on.Node(n)
		}
	}
	if open&cniNodeChanged != 0 && on.CNINode != nil {
		n, ok, _ := c.cniNodes.get(c.opts.NodeName)
		on.CNINode(n.node, ok)
	}
	if open&eniConfigsChanged != 0 && on.ENIConfigs != nil {
		on.ENIConfigs()
	}
	if open&podsChanged != 0 && on.Pods != nil {
		on.Pods()
	}
}

func (c *Client) deliverReach(on Changes) {
	version, err := c.reach.state()
	switch {
	case version != "" && on.Reached != nil:
		on.Reached(version)
	case version == "" && on.Lost != nil:
		on.Lost(err)
	}
}
