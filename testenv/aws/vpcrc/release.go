package vpcrc

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"cnictl/testenv/aws/fakeaws"
)

// release puts the branches of a pod that ended into its node's delete queue.
func (r *run) release(uid types.UID) {
	atOnce := r.Faults().ReuseVLANs
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.nodes {
		branches := n.pods[uid]
		if len(branches) == 0 {
			continue
		}
		delete(n.pods, uid)
		if !atOnce {
			n.queue.park(time.Now(), branches)
			return
		}
		for _, b := range branches {
			if err := r.deleteBranch(b); err != nil {
				n.queue.discard([]branch{b})
				continue
			}
			n.vlans.free(b.VLAN)
		}
		return
	}
}

// discard puts branches that no pod ever used at the front of the delete queue.
func (r *run) discard(n *node, uid types.UID, branches []branch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(n.pods, uid)
	delete(n.pending, uid)
	n.queue.discard(branches)
}

// processQueue deletes a node's cooled-down branches at every tick.
func (r *run) processQueue(n *node) {
	for r.wait(queueTick) {
		select {
		case <-n.gone:
			return
		default:
		}
		r.deleteCooled(n)
	}
}

func (r *run) deleteCooled(n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for {
		p, due := n.queue.next(now, r.opts.scaled(cooldown))
		if !due {
			return
		}
		if err := r.deleteBranch(p.branch); err == nil {
			n.vlans.free(p.VLAN)
		} else if n.queue.failed(p) {
			r.log.Warn("branch ENI is forgotten, its VLAN id is lost", "eni_id", p.ENI, "vlan", p.VLAN, "error", err)
		}
	}
}

// deleteBranch deletes a branch ENI. A failure to end its association does not matter.
func (r *run) deleteBranch(b branch) error {
	if b.AssociationID != "" {
		_ = r.world.DisassociateBranch(b.AssociationID)
	}
	err := r.world.DeleteENI(b.ENI)
	if e := (*fakeaws.Error)(nil); errors.As(err, &e) && e.Code == "InvalidNetworkInterfaceID.NotFound" {
		return nil
	}
	return err
}
