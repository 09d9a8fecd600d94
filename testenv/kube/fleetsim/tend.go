package fleetsim

import (
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// While a client watches pods or events: how often changes are published, and in how many turns
// the pools of all nodes are updated.
const (
	tendEvery = 500 * time.Millisecond
	tendTurns = 20
)

// tend publishes changes that no request causes.
func (s *Sim) tend() {
	t := time.NewTicker(tendEvery)
	defer t.Stop()
	rnd := rand.New(rand.NewPCG(s.opts.Seed, 0x74656e64))
	nextLeave := s.epoch.Add(s.opts.NodeChurn)
	for turn := 0; ; turn++ {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
		}
		for _, n := range s.nodes {
			if n.has(Flapping) {
				n.turn()
			}
		}
		for now := s.now(); s.opts.NodeChurn > 0 && !nextLeave.After(now); nextLeave = nextLeave.Add(s.opts.NodeChurn) {
			s.nodes[rnd.IntN(len(s.nodes))].toggle(now)
		}
		s.mu.Lock()
		watched := s.watchers[s.kinds.pods]+s.watchers[s.kinds.events] > 0
		s.mu.Unlock()
		for i := turn % tendTurns; watched && i < len(s.nodes); i += tendTurns {
			if n := s.nodes[i]; !n.has(Fargate) && !n.has(Windows) && s.ctx.Err() == nil {
				n.withWorld(func(*world) {})
			}
		}
	}
}

// turn updates a flapping node.
func (n *node) turn() {
	turns, away := n.flap(n.sim.now())
	s := n.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.down == away {
		return
	}
	wasNode, wasPod := n.objectLocked(), n.daemonPodLocked()
	n.down, n.restarts, n.since = away, turns, s.now()
	s.publishNode(n, wasNode, wasPod)
}

// publishNode publishes the Node and the aws-node pod after a change. The caller holds Sim.mu.
func (s *Sim) publishNode(n *node, wasNode *corev1.Node, wasPod *corev1.Pod) {
	s.hub.publish(s.kinds.nodes, changed, wasNode, func(version uint64) runtime.Object {
		n.version = version
		return n.objectLocked()
	})
	if n.hasPod() {
		s.hub.publish(s.kinds.pods, changed, wasPod, func(version uint64) runtime.Object {
			n.podVersion = version
			return n.daemonPodLocked()
		})
	}
}

// toggle removes a node from the cluster, or brings it back as a new one with the same name.
func (n *node) toggle(now time.Time) {
	s := n.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := deleted
	wasNode, wasPod := n.objectLocked(), n.daemonPodLocked()
	if n.gone {
		kind, n.generation, n.since = added, n.generation+1, now
	}
	n.gone = kind == deleted
	var prev, prevPod runtime.Object
	if kind == deleted {
		prev, prevPod = wasNode, wasPod
	}
	s.hub.publish(s.kinds.nodes, kind, prev, func(version uint64) runtime.Object {
		n.version = version
		return n.objectLocked()
	})
	if n.hasPod() {
		s.hub.publish(s.kinds.pods, kind, prevPod, func(version uint64) runtime.Object {
			n.podVersion = version
			return n.daemonPodLocked()
		})
	}
}
