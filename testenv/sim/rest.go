package sim

import (
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
	"cnictl/testenv/aws/ec2model"
)

// This file is the end of a run: no more faults occur, and each node must settle into the
// desired state.

const (
	// patience is how long pods without an address keep trying while the world settles.
	patience = 15 * time.Minute
	// noticing is how long EC2 may have addresses before a refused daemon retries.
	noticing = keeper.ExhaustedMax + time.Minute
	// stillness is the last part of the rest, in which nothing may change.
	stillness = 20 * time.Minute
)

// settle ends the faults, waits until the world has settled and checks its state.
func (w *World) settle() {
	w.settling = true
	w.tracef("no more faults")
	begun := w.clock
	for _, x := range w.ec2.enis {
		x.stuck = false
	}
	for _, n := range w.nodes {
		n.surprised()
		n.cordon(false)
	}
	for w.fail == nil && w.clock < begun+patience {
		w.endCutPods()
		w.runUntil(w.clock + time.Minute)
		for _, n := range w.nodes {
			if n.process == nil || n.process.keeper == nil || !n.couldGrow() {
				n.stuck = w.clock
			}
		}
	}
	w.endHungryPods()
	w.inspectLoose(begun)
	if w.retagged { // a daemon notices that when it needs an ENI or starts
		w.drainAll()
	}
	w.runUntil(begun + w.Scenario.Rest - stillness)
	before, refused := w.changes(), w.refused()
	w.runUntil(begun + w.Scenario.Rest)
	w.check("stillness", w.changes()-before <= w.tries(refused), "%d calls change something long after the last fault", w.changes()-before)
	more := w.refused().all - refused.all
	w.check("stillness", more <= 2*len(w.nodes), "%d calls in %v for more than EC2 takes", more, stillness)
	w.inspectRest(false)
	w.restartAll()
}

// deleteEffort is how long a daemon keeps trying to delete an ENI that it detached.
const deleteEffort = 4 * time.Minute

// inspectLoose looks for unattached ENIs that a running daemon should have deleted: it
// deletes what it detached or could not attach, and does not leave that to a sweep.
func (w *World) inspectLoose(settling time.Duration) {
	for _, x := range w.ec2.ordered() {
		if x.maker == nil || x.adopted || x.unreported || x.retagged > 0 || x.Tags[resync.TagNoManage] == "true" || x.node != nil || x.loose > w.clock-2*deleteEffort {
			continue
		}
		p := x.maker.process
		known := p != nil && p.born < x.loose && x.loose > settling-deleteEffort
		if known && !x.byOthers {
			w.violate("leaks", "%s of %s has been attached nowhere for %v", x.ID, x.maker.name, w.clock-x.loose)
		}
	}
}

// endCutPods deletes the pods whose addresses somebody else took: they do not work.
func (w *World) endCutPods() {
	for _, n := range w.nodes {
		for _, p := range slices.Clone(n.pods) {
			if p.box.cut {
				p.doom()
			}
		}
	}
}

// endHungryPods deletes the pods without an address, and checks that EC2 had none to give.
func (w *World) endHungryPods() {
	for _, n := range w.nodes {
		hungry := 0
		for _, p := range slices.Clone(n.pods) {
			if !p.box.alive && !p.doomed && w.clock-p.since > patience/2 {
				hungry++
			}
			if !p.box.alive {
				p.doom()
			}
		}
		if hungry > 0 {
			could := w.clock - n.stuck
			w.check("convergence", could <= noticing, "%s: %d pods have waited for %v, and EC2 has had addresses for %v", n.name, hungry, patience/2, could)
		}
	}
}

// restartAll restarts every daemon, which must change nothing.
func (w *World) restartAll() {
	before, refused := w.changes(), w.refused()
	w.drainAll()
	w.runUntil(w.clock + 3*time.Minute)
	w.check("stillness", w.changes()-before <= w.tries(refused), "%d calls change something after a restart, without a reason", w.changes()-before)
	w.inspectRest(true)
}

func (w *World) drainAll() {
	for _, n := range w.nodes {
		if n.process != nil {
			n.process.drain()
		}
	}
}

func (w *World) changes() int {
	sum := 0
	for _, n := range w.nodes {
		sum += n.calls.changes
	}
	return sum
}

// refusals counts the calls for more than EC2 takes.
type refusals struct{ all, tooLarge int }

func (w *World) refused() (sum refusals) {
	for _, n := range w.nodes {
		sum.all, sum.tooLarge = sum.all+n.refused, sum.tooLarge+n.tooLarge
	}
	return sum
}

// tries is how many calls may have changed something because of the refusals since there were
// that many: an ENI is created, refused and deleted. One that EC2 refused for its addresses loses
// some, is attached and prepared, turns out to be too many with the limit that is known now, and is
// detached. One call may be under way.
func (w *World) tries(before refusals) int {
	if !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.spec.Takes.IPv4PerENI > 0 }) {
		return 0
	}
	now := w.refused()
	return 2*(now.all-before.all) + 4*(now.tooLarge-before.tooLarge) + len(w.nodes)
}

func (w *World) check(invariant string, holds bool, format string, args ...any) {
	if !holds {
		w.violate(invariant, format, args...)
	}
}

// inspectRest checks everything. fresh means that the daemons have just started.
func (w *World) inspectRest(fresh bool) {
	for _, n := range w.nodes {
		if w.fail != nil {
			return
		}
		if n.process == nil || !n.process.serving {
			w.violate("convergence", "%s: no daemon serves", n.name)
			return
		}
		n.inspect()
		n.checkBook()
		n.checkPods()
		n.checkENIs(fresh)
		n.checkPool()
		n.checkKernel(fresh)
	}
	w.checkLeaks()
}

// checkPods checks that the book and the file contain exactly the running pods.
func (n *node) checkPods() {
	w := n.w
	living := map[netip.Addr]*sandbox{}
	for _, s := range n.living() {
		living[s.address] = s
	}
	entries, err := checkpoint.Decode(n.disk.file)
	if n.disk.there && err != nil {
		w.violate("file", "%s: %v", n.name, err)
	}
	file := map[ipam.Sandbox]netip.Addr{}
	for _, e := range entries {
		file[ipam.Sandbox{Network: e.NetworkName, ContainerID: e.ContainerID, IfName: e.IfName}] = e.Address()
	}
	assignments := n.process.keeper.Assignments()
	for _, a := range assignments {
		w.check("missed DELs", living[a.Address] != nil, "%s: the book keeps %v for %s, which is gone", n.name, a.Address, a.Sandbox.ContainerID)
		w.check("file", file[a.Sandbox] == a.Address, "%s: the file has %v for %s, the book %v", n.name, file[a.Sandbox], a.Sandbox.ContainerID, a.Address)
	}
	w.check("file", len(file) == len(assignments), "%s: the file has %d allocations, the book %d", n.name, len(file), len(assignments))
}

// checkENIs checks that the book contains the node's managed ENIs with all their addresses.
func (n *node) checkENIs(fresh bool) {
	w := n.w
	inBook := map[ipam.ENIID]ipam.ENIState{}
	for _, e := range n.book() {
		inBook[e.ID] = e
	}
	for _, x := range w.ec2.ordered() {
		if x.node != n {
			continue
		}
		e, there := inBook[x.ID]
		delete(inBook, x.ID)
		w.check("leaks", x.AttachmentStatus == resync.AttachmentAttached, "%s: %s is %s", n.name, x.ID, x.AttachmentStatus)
		if !n.manages(x) {
			w.check("hands off", !there, "%s: the book has %s, which is not the CNI's", n.name, x.ID)
			continue
		}
		w.check("leaks", there, "%s: the book lacks %s", n.name, x.ID)
		w.check("quarantine", !e.Quarantined() && !e.Held, "%s: %s is out of use", n.name, x.ID)
		// If EC2 refused the change, the next start tries again.
		w.check("ENIs", !fresh || x.DeleteOnTermination || x.maker == nil || x.adopted, "%s: %s does not end with its instance", n.name, x.ID)
		var have []netip.Prefix
		for _, c := range e.CIDRs {
			have = append(have, c.Prefix)
			w.check("quarantine", !c.Quarantined() && !c.Held, "%s: %v of %s is out of use", n.name, c.Prefix, x.ID)
		}
		want := x.CIDRs()
		slices.SortFunc(want, comparePrefixes)
		w.check("addresses", slices.Equal(have, want), "%s: the book has %v on %s, EC2 %v", n.name, have, x.ID, want)
	}
	for id := range inBook {
		w.violate("ENIs", "%s: the book has %s, which is not attached", n.name, id)
	}
}

func comparePrefixes(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) }

// manages reports whether an attached ENI belongs to the daemon according to its tags.
func (n *node) manages(x *eni) bool {
	return resync.Owner(resync.OwnershipInput{
		Primary: x == n.primary, Type: resync.InterfaceType(x.InterfaceType), Tags: x.Tags,
		InstanceID: n.instance, ManageUntagged: n.spec.ManageUntagged,
	}) == resync.Managed
}

// checkPool checks that the plan is empty and that the pool meets its targets if it can.
func (n *node) checkPool() {
	w, k, now := n.w, n.process.keeper, n.w.now()
	for _, a := range k.Next(now) {
		switch a.(type) {
		case warmpool.Wait:
		case warmpool.AttachENI, warmpool.AssignAddresses, warmpool.AssignPrefixes:
			// It may retry occasionally while EC2 has no addresses.
			w.check("convergence", !n.couldGrow(), "%s: still plans to %v", n.name, a)
		default:
			w.violate("convergence", "%s: still plans to %v", n.name, a)
		}
	}
	p, kind := n.spec.Policy, ipam.SecondaryIPs
	perENI := n.takes().IPv4PerENI - 1
	if p.PrefixDelegation {
		kind = ipam.Prefixes
	}
	t := k.State(now).Book.Totals(0, kind, now, p.Cooldown)
	short := false
	switch {
	case p.WarmIP > 0 || p.MinIP > 0:
		short = t.Free < p.WarmIP || t.Total < p.MinIP
	case p.PrefixDelegation:
		short = t.Free < p.WarmPrefix*ec2model.BlockSize
	default:
		short = t.Free < p.WarmENI*perENI
	}
	if (short || t.Free == 0) && n.couldGrow() {
		w.violate("convergence", "%s: %d of %d addresses are free, the targets want more and EC2 has them", n.name, t.Free, t.Total)
	}
}

// believed is what EC2 takes, unless the daemon has reason to believe in less: somebody attached
// an ENI, which made EC2 refuse another, and detached it before the daemon saw it.
func (n *node) believed() warmpool.Limits {
	takes, st := n.takes(), n.process.keeper.State(n.w.now())
	if n.w.Scenario.Meddling == 0 || !st.Stated.Any() {
		return takes
	}
	return warmpool.Limits{IPv4PerENI: min(takes.IPv4PerENI, st.Limits.IPv4PerENI), ENIsByCard: []int{min(takes.ENIsByCard[0], st.Limits.ENIsByCard[0])}}
}

// couldGrow reports whether the node may get another address or prefix and EC2 has one.
func (n *node) couldGrow() bool {
	w, p := n.w, n.spec.Policy
	kind, unit := ipam.SecondaryIPs, 1
	if p.PrefixDelegation {
		kind, unit = ipam.Prefixes, ec2model.BlockSize
	}
	t := n.process.keeper.State(w.now()).Book.Totals(0, kind, w.now(), p.Cooldown)
	if t.Assigned+t.Free >= n.spec.MaxPods {
		return false
	}
	room := func(s *subnet, more int) bool {
		return s.Free() >= unit+more && (!p.PrefixDelegation || s.FreeBlocks() > 0)
	}
	policy, takes := n.settings().Subnets, n.believed()
	attached := 0
	for _, x := range w.ec2.enis {
		if x.node != n {
			continue
		}
		attached++
		if n.manages(x) && !n.mayMiss(x) && !n.excludes(x) && x.slots() < takes.IPv4PerENI && room(x.subnet, 0) {
			return true
		}
	}
	most := takes.ENIsByCard[0]
	if p.MaxENI > 0 {
		most = min(most, p.MaxENI)
	}
	if attached >= most {
		return false
	}
	return slices.ContainsFunc(w.ec2.subnets, func(s *subnet) bool {
		return policy.Usable(resync.Subnet{ID: s.id, Tags: s.tags}) && room(s, 1)
	})
}

// mayMiss reports whether the daemon may not know yet that an ENI belongs to it: only EC2
// shows changed tags, and without another reason it is asked every [keeper.EC2Every].
func (n *node) mayMiss(x *eni) bool {
	return x.retagged > 0 && n.w.clock < x.retagged+keeper.EC2Every+time.Minute
}

// excludes reports whether the tags of an ENI's subnet keep new pods off it.
func (n *node) excludes(x *eni) bool {
	return n.settings().Subnets.Excluded(resync.Subnet{ID: x.SubnetID, Tags: x.subnet.tags})
}

// checkKernel checks that living pods, and only those, have routes and rules, and the right
// ones. The next start removes rules that a lost DEL left without a route.
func (n *node) checkKernel(fresh bool) {
	w := n.w
	for _, a := range n.kernel.addresses() {
		r, s := n.kernel.routes[a], n.held[a]
		w.check("rules", s != nil || r.link == "" && !fresh, "%s: %v has a route over %q and no pod", n.name, a, r.link)
	}
	for _, s := range n.living() {
		r := n.kernel.routes[s.address]
		if r == nil {
			w.violate("rules", "%s: %v of %s has no route", n.name, s.address, s)
			continue
		}
		x := n.carrier(s.address)
		if x == nil {
			w.violate("none lost", "%s: no ENI of the node has %v of living %s", n.name, s.address, s)
			continue
		}
		w.check("rules", r.link == s.pod.link && r.table == x.table(), "%s: %v of %s goes over %q and table %d, want %d",
			n.name, s.address, s, r.link, r.table, x.table())
		_, setUp := n.kernel.tables[x.PrimaryIP]
		w.check("rules", setUp || x == n.primary, "%s: %s has pods and no routes", n.name, x.ID)
	}
}

// checkLeaks checks that every ENI that a daemon created is attached.
func (w *World) checkLeaks() {
	for _, x := range w.ec2.ordered() {
		if x.maker != nil && !x.adopted && x.node == nil && x.Tags[resync.TagNoManage] != "true" {
			w.violate("leaks", "%s of %s is attached nowhere", x.ID, x.maker.name)
		}
	}
}
