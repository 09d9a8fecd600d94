package ipamd

import (
	"context"
	"net"
	"strings"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/cluster"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
)

// branchOwner starts the owners of branch pods' addresses, which are in no pool.
const branchOwner = "branch/"

func isBranchOwner(owner string) bool { return strings.HasPrefix(owner, branchOwner) }

// deviceGrace is how long a VLAN device without a pod is left alone: longer than any ADD
// takes.
const deviceGrace = 2 * time.Minute

// branchesNow are the living branch pods of the node as the API server shows them; false:
// it does not. A pod that is being deleted is none: its DEL may be under way.
func (a *asserter) branchesNow() (out []cluster.Pod, known bool) {
	if !a.branchPods {
		return nil, false
	}
	_, known = a.api.ExpectedPods(func(p cluster.Pod) bool {
		if p.BranchENI && p.PodENI != "" && !p.Ended && !p.HostNetwork {
			out = append(out, p)
		}
		return false
	})
	return out, known
}

// addBranches adds the branch pods to what lives.
func (p *repairs) addBranches(view *hostnet.View, to *living) {
	pods, known := p.branchesNow()
	if !known {
		return
	}
	to.vlans = map[int]bool{}
	trunk, there := ask(p.owner, func(k *keeper.Keeper, _ time.Time) ipam.ENIState { e, _ := k.Trunk(); return e })
	link, linked := view.Link(trunk.MAC)
	for _, pod := range pods {
		b, err := cluster.ParseBranch(pod.PodENI, p.ipv6)
		if err != nil {
			continue // its ADD was refused
		}
		to.vlans[b.VLAN] = true
		mac, err := net.ParseMAC(b.MAC)
		if err != nil || len(mac) != 6 || !there || !linked {
			continue
		}
		table, _ := netnames.BranchTable(b.VLAN)
		hash := netnames.Hash(pod.Namespace, pod.Name, 0)
		to.pods = append(to.pods, rules.LivingPod{
			Address: b.Address, Owner: branchOwner + pod.UID, Hash: hash, Table: table, Restored: p.atStart[hash],
			Branch: &rules.Branch{VLAN: b.VLAN, MAC: [6]byte(mac), Gateway: b.Gateway, Trunk: link},
		})
	}
}

// endedBranches are those of repairs whose branch pod has ended while they were made.
func (p *repairs) endedBranches(done []rules.Repair) (gone []rules.Repair) {
	pods, known := p.branchesNow()
	if !known {
		return nil
	}
	lives := map[string]bool{}
	for _, pod := range pods {
		lives[branchOwner+pod.UID] = true
	}
	for _, r := range done {
		if isBranchOwner(r.Owner) && !lives[r.Owner] {
			gone = append(gone, r)
		}
	}
	return gone
}

// dropDevices removes the VLAN devices of branch pods that ended without a DEL: nobody at
// the API server has their VLAN id, and no pod's link is led to them.
func (p *repairs) dropDevices(ctx context.Context, view *hostnet.View, s living) {
	if s.vlans == nil || p.api.lost.Load() {
		clear(p.unneeded) // nobody knows who lives
		return
	}
	idle := view.IdleDevices()
	for vlan := range p.unneeded {
		if !idle[vlan] || s.vlans[vlan] {
			delete(p.unneeded, vlan)
		}
	}
	for vlan := range idle {
		since, seen := p.unneeded[vlan]
		switch {
		case s.vlans[vlan]:
		case !seen:
			p.unneeded[vlan] = p.now
		case p.now.Sub(since) >= deviceGrace:
			delete(p.unneeded, vlan)
			if err := p.host.DropDevice(ctx, vlan, p.ipv6); err != nil {
				p.fail(err)
			}
		}
	}
}
