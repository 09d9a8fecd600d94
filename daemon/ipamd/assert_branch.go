package ipamd

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/cluster"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/netstate"
)

// branchOwner prefixes the owners of branch pods' addresses, which are in no pool.
const branchOwner = "branch/"

func isBranchOwner(owner string) bool { return strings.HasPrefix(owner, branchOwner) }

// branchSandbox is the current sandbox of a branch pod, which can outlive its sandboxes. The
// runtime removes the namespace, and with it the pod's link, only after the DEL; from the DEL
// on nothing of the sandbox is restored.
type branchSandbox struct {
	container string // of the last ADD or DEL
	released  bool   // its DEL has arrived
	since     time.Time
	seen      time.Time // when the API server last showed the pod; zero if not yet
}

const (
	// sandboxKept is how long a branch pod is remembered that the API server does not show,
	// and sandboxesMost is how many pods are remembered.
	sandboxKept   = 10 * time.Minute
	sandboxesMost = 4096
)

// released records a DEL before its plugin gets the answer, and so before the plugin removes
// anything. The DEL of an older sandbox says nothing about a newer one.
func (a *asserter) released(req *cniwire.DelRequest, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pod := podName{req.PodNamespace, req.PodName}
	if is := a.sandboxes[pod]; is.container == "" || is.container == req.ContainerID {
		a.noteSandbox(pod, branchSandbox{container: req.ContainerID, released: true, since: now})
	}
}

// noteSandbox records a pod's sandbox. The caller holds a.mu.
func (a *asserter) noteSandbox(pod podName, s branchSandbox) {
	if !a.branchPods || pod.name == "" {
		return
	}
	if _, known := a.sandboxes[pod]; !known && len(a.sandboxes) >= sandboxesMost {
		clear(a.sandboxes)
	}
	a.sandboxes[pod] = s
}

// sandbox returns a pod's sandbox, if known.
func (a *asserter) sandbox(p cluster.Pod) (s branchSandbox, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, known = a.sandboxes[podName{p.Namespace, p.Name}]
	return s, known
}

// forgetSandboxes forgets pods that have been gone for long.
func (a *asserter) forgetSandboxes(there []cluster.Pod, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range there {
		pod := podName{p.Namespace, p.Name}
		if s, ok := a.sandboxes[pod]; ok {
			s.seen = now
			a.sandboxes[pod] = s
		}
	}
	for key, s := range a.sandboxes {
		if now.Sub(latest(s.since, s.seen)) >= sandboxKept {
			delete(a.sandboxes, key)
		}
	}
}

// branchesNow returns the node's running branch pods as shown by the API server; false if it
// does not show them.
func (a *asserter) branchesNow() (out []cluster.Pod, known bool) {
	if !a.branchPods {
		return nil, false
	}
	_, known = a.api.ExpectedPods(func(p cluster.Pod) bool {
		if p.OnBranch() {
			out = append(out, p)
		}
		return false
	})
	return out, known
}

// addBranches adds the branch pods to the living state.
func (p *repairs) addBranches(view *hostnet.View, to *living) {
	pods, known := p.branchesNow()
	if !known {
		return
	}
	p.forgetSandboxes(pods, p.now)
	p.claims = cluster.ClaimsOf(pods, p.claims)
	pooled := map[netip.Addr]bool{}
	for _, pod := range to.pods {
		pooled[pod.Address] = true
	}
	to.vlans = map[int]bool{}
	trunk, there := ask(p.owner, func(k *keeper.Keeper, _ time.Time) ipam.ENIState { e, _ := k.Trunk(); return e })
	link, linked := view.LinkOf(trunk.MAC)
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
		sandbox, known := p.sandbox(pod)
		if sandbox.released {
			continue
		}
		// The annotation of a running pod can be changed to name the branch ENI of another one. A
		// repair would then take it from that pod, as the ADD would that is refused.
		if _, _, disputed := p.claims.Rival(pod, b); disputed || pooled[b.Address] {
			continue
		}
		hash := netnames.Hash(pod.Namespace, pod.Name, 0)
		settled := p.atStart[hash]
		if known {
			settled = p.now.Sub(sandbox.since) >= addGrace
		}
		table, _ := netnames.BranchTable(b.VLAN)
		to.pods = append(to.pods, rules.WorkloadPod{
			Address: b.Address, Owner: branchOwner + pod.UID, Hash: hash, Table: table, Settled: settled,
			Branch: &rules.Branch{VLAN: b.VLAN, MAC: netstate.MAC(mac), Gateway: b.Gateway, Trunk: link},
		})
	}
}

// endedBranches returns the repairs whose branch pod ended while they were made.
func (p *repairs) endedBranches(done []rules.Repair) (gone []rules.Repair) {
	pods, known := p.branchesNow()
	if !known {
		return nil
	}
	lives := map[string]bool{}
	for _, pod := range pods {
		s, _ := p.sandbox(pod)
		lives[branchOwner+pod.UID] = !s.released
	}
	for _, r := range done {
		if isBranchOwner(r.Owner) && !lives[r.Owner] {
			gone = append(gone, r)
		}
	}
	return gone
}

// dropDevices removes the VLAN devices of branch pods that ended without a DEL: no pod at the
// API server has their VLAN ID, and no pod's link leads to them. The ID may be given to another
// pod at any time, so everything is read again before each removal.
func (p *repairs) dropDevices(ctx context.Context, view *hostnet.View, s living) error {
	if s.vlans == nil || p.api.lost.Load() {
		clear(p.unneeded) // it is unknown which pods run
		return nil
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
		case p.now.Sub(since) >= addGrace:
			delete(p.unneeded, vlan)
			if err := p.dropDevice(ctx, vlan); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropDevice removes a device if it still belongs to no pod. It reads the kernel first and
// then the running pods, so no ADD of a pod with the VLAN ID can have begun before the read.
func (p *repairs) dropDevice(ctx context.Context, vlan int) error {
	view, err := p.host.View(ctx, p.ipv6)
	if err != nil {
		return err
	}
	s, ok := p.state(view)
	if !ok || s.vlans == nil || s.vlans[vlan] || !view.IdleDevices()[vlan] {
		return nil
	}
	return p.host.DropDevice(ctx, view, vlan)
}
