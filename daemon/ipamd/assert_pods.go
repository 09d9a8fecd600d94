package ipamd

import (
	"context"
	"slices"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// living is the state that should exist, determined after a view was read.
type living struct {
	pods  []rules.WorkloadPod
	enis  []ipam.ENIState
	vlans map[int]bool // of branch pods; nil if unknown
}

func (p *repairs) state(view *hostnet.View) (living, bool) {
	type answer struct {
		all  []ipam.Assignment
		enis []ipam.ENIState
	}
	got, ok := ask(p.owner, func(k *keeper.Keeper, _ time.Time) answer { return answer{k.Assignments(), k.ENIs()} })
	if !ok {
		return living{}, false
	}
	out := living{pods: make([]rules.WorkloadPod, 0, len(got.all)), enis: got.enis}
	nth := interfaceNumbers(got.all)
	for i := range got.all {
		if pod, ok := p.podOf(&got.all[i], nth); ok {
			out.pods = append(out.pods, pod)
		}
	}
	if p.atStart == nil {
		p.atStart = view.PodHashes()
	}
	p.addBranches(view, &out)
	return out, true
}

// ownerOf distinguishes one owner of an address from the next.
func ownerOf(s ipam.Sandbox) string { return s.Network + "/" + s.ContainerID + "/" + s.IfName }

// interfaceNumbers returns the positions of the interfaces of pods that have several. Their
// links are named by these.
func interfaceNumbers(all []ipam.Assignment) map[ipam.Sandbox]int {
	cards := map[string][]int{}
	for _, a := range all {
		if a.Pod.Interfaces > 1 {
			cards[ownerOf(a.Sandbox)] = append(cards[ownerOf(a.Sandbox)], a.Sandbox.Interface)
		}
	}
	out := map[ipam.Sandbox]int{}
	for _, a := range all {
		if list := cards[ownerOf(a.Sandbox)]; len(list) > 0 {
			slices.Sort(list)
			out[a.Sandbox] = slices.Index(list, a.Sandbox.Interface)
		}
	}
	return out
}

// podOf returns what an allocation should have; false if its table or link is unknown.
func (p *repairs) podOf(a *ipam.Assignment, nth map[ipam.Sandbox]int) (out rules.WorkloadPod, ok bool) {
	if a.ENI == "" {
		return out, false
	}
	out = rules.WorkloadPod{Address: a.Address, Owner: ownerOf(a.Sandbox), Table: a.RouteTable}
	out.Settled = p.restored[a.Address] == out.Owner || p.now.Sub(a.AssignedAt) >= addGrace
	switch link := a.Sandbox.ContainerID; {
	case a.Sandbox == resync.Recovered(link):
		digits := len(netnames.Hash("", "", 0))
		if len(link) < digits {
			return out, false
		}
		out.Hash = link[len(link)-digits:]
	case a.Pod.Name == "":
		return out, false
	default:
		out.Hash = netnames.Hash(a.Pod.Namespace, a.Pod.Name, nth[a.Sandbox])
	}
	return out, true
}

// pods restores what pods lost. It returns again if another look is needed.
func (p *repairs) pods(ctx context.Context, view *hostnet.View, pods []rules.WorkloadPod) (again bool, _ error) {
	var due []rules.Repair
	for _, r := range p.baseline.Diff(view.State, pods, p.monitor.MadeWith) {
		if !p.later(r.Object + " " + r.Pod.String()) {
			due = append(due, r)
		}
	}
	if len(due) == 0 {
		return false, nil
	}
	done, err := p.host.Repair(ctx, due)
	ended := p.ended(done)
	if len(ended) > 0 {
		if back := p.host.TakeBack(ctx, ended); back != nil {
			p.fail(back)
		}
		done = slices.DeleteFunc(done, func(r rules.Repair) bool { return slices.Contains(ended, r) })
	}
	for _, r := range done {
		p.noted(r.Object+" "+r.Pod.String(), hostnet.Loss{Object: r.Object, Text: r.String()})
	}
	return len(done) > 0, err
}

// ended returns the repairs whose pod ended while they were made.
func (p *repairs) ended(done []rules.Repair) []rules.Repair {
	gone, ok := ask(p.owner, func(k *keeper.Keeper, _ time.Time) (gone []rules.Repair) {
		for _, r := range done {
			a, held := k.AtAddress(r.Pod)
			if !isBranchOwner(r.Owner) && (!held || ownerOf(a.Sandbox) != r.Owner) {
				gone = append(gone, r)
			}
		}
		return gone
	})
	if !ok {
		return nil
	}
	return append(gone, p.endedBranches(done)...)
}
