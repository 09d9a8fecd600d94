package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"cnictl/testenv/node"
)

// auditEvery is how often checkpoint, pods and EC2 are compared while pods come and go.
const auditEvery = time.Second

// audit compares the living pods with the daemon's checkpoint and with EC2 until the context
// ends.
func (s *soak) audit(ctx context.Context) {
	tick := time.NewTicker(auditEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := s.ledger.living()
		book, err := s.machine.Allocations()
		if err != nil {
			s.tally.mistake("the checkpoint: %s", err)
			continue
		}
		for _, m := range compare(stayed(before, s.ledger.living()), book, s.ours) {
			s.tally.mistake("%s", m)
		}
	}
}

// ours reports whether EC2 assigns an address to the node.
func (s *soak) ours(a netip.Addr) bool {
	owner, ok := s.cluster.World.OwnerOf(a)
	return ok && owner.Attachment.InstanceID == s.machine.InstanceID
}

// compare lists the differences between the living pods, the checkpoint and EC2.
func compare(living map[string]tenant, book []node.Allocation, ours func(netip.Addr) bool) (wrong []string) {
	holder := map[netip.Addr]string{}
	for _, a := range book {
		if other, ok := holder[a.Address()]; ok && other != a.ContainerID {
			wrong = append(wrong, fmt.Sprintf("the checkpoint assigns %s to both %.12s and %.12s", a.Address(), other, a.ContainerID))
		}
		holder[a.Address()] = a.ContainerID
	}
	for pod, t := range living {
		has, ok := holder[t.address]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("pod %s has %s, which the checkpoint assigns to no pod", pod, t.address))
		case t.sandbox != "" && has != t.sandbox:
			wrong = append(wrong, fmt.Sprintf("pod %s has %s, which the checkpoint assigns to %.12s", pod, t.address, has))
		}
		if !ours(t.address) {
			wrong = append(wrong, fmt.Sprintf("pod %s has %s, which belongs to no ENI of the node", pod, t.address))
		}
	}
	slices.Sort(wrong)
	return wrong
}
