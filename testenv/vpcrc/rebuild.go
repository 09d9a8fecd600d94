package vpcrc

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/testenv/fakeaws"
)

// rebuild restores the branches of a trunk that existed before this run, from EC2's list
// and from the annotations of the node's pods.
func (r *run) rebuild(n *node, trunk string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	owners := r.annotatedPods(n.name) // under the lock, so pods that end later are released after this
	n.trunk = trunk
	found := r.branchesOf(n, trunk)
	for uid, branches := range owners {
		for _, b := range branches {
			if _, there := found[b.ENI]; !there {
				r.log.Warn("annotated branch ENI is not in EC2, dropped", "eni_id", b.ENI)
				continue
			}
			delete(found, b.ENI)
			n.vlans.mark(b.VLAN)
			n.pods[uid] = append(n.pods[uid], b)
		}
	}
	for _, e := range found {
		vlan, _ := strconv.Atoi(e.Tags[tagVLAN]) // 0, which is unused, if somebody else made the ENI
		n.vlans.mark(vlan)
		n.queue.park(time.Now(), []branch{{ENI: e.ID, VLAN: vlan}})
	}
}

// annotatedPods returns the annotated branches of a node's pods that have not ended, by UID.
func (r *run) annotatedPods(node string) map[types.UID][]branch {
	out := make(map[types.UID][]branch)
	for _, o := range r.podCache.GetStore().List() {
		p, ok := o.(*corev1.Pod)
		if ok && p.Spec.NodeName == node && !ended(p) && p.Annotations[podENIKey] != "" {
			out[p.UID] = annotated(p.Annotations[podENIKey])
		}
	}
	return out
}

// branchesOf lists a trunk's branches as EC2 does: by tag, in the current subnet only.
func (r *run) branchesOf(n *node, trunk string) map[string]fakeaws.ENI {
	out := make(map[string]fakeaws.ENI)
	if r.Faults().LoseBranches {
		return out
	}
	for _, e := range r.world.ENIs() {
		if e.Tags[tagTrunk] == trunk && e.SubnetID == n.network.subnet.ID {
			out[e.ID] = e
		}
	}
	return out
}
