package sim

import (
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// This file simulates other people: they change what belongs to the daemons, take and free
// addresses of the subnets, and cordon and reboot nodes.

// meddle starts all meddling.
func (w *World) meddle() {
	d := w.dice.crashes
	w.every(w.Scenario.Meddling, func() {
		w.stats.Meddled++
		w.meddleOnce(w.nodes[d.Below(len(w.nodes))])
	})
	w.every(w.Scenario.Crowding, func() { w.crowd(w.ec2.subnets[d.Below(len(w.ec2.subnets))]) })
	for _, n := range w.nodes {
		w.every(w.Scenario.Drains, func() {
			if n.process != nil {
				n.process.drain()
			}
		})
		w.every(w.Scenario.Reboots, n.reboot)
	}
}

// every repeats an action until the world settles.
func (w *World) every(gap time.Duration, do func()) {
	if gap == 0 {
		return
	}
	w.begin(func() {
		for {
			w.sleep(w.dice.crashes.span(gap/2, 2*gap))
			if w.settling {
				return
			}
			do()
		}
	})
}

func (w *World) meddleOnce(n *node) {
	d := w.dice.crashes
	mine := w.ec2.secondary(n)
	x := n.primary
	if len(mine) > 0 {
		x = mine[d.Below(len(mine))]
	}
	switch act := d.Below(100); {
	case act < 15 && x != n.primary && x.AttachmentStatus == resync.AttachmentAttached:
		w.tracef("%s: somebody detaches %s", n.name, x.ID)
		w.cut(x, x.CIDRs())
		x.byOthers = true
		w.ec2.detach(x)
		if d.chance(0.5) {
			w.after(30*time.Second, func() { w.remove(x) })
		}
	case act < 30 && len(x.CIDRs()) > 0:
		all := x.CIDRs()
		shuffle(d, all)
		some := all[:d.between(1, min(3, len(all)))]
		w.tracef("%s: somebody takes %v off %s", n.name, some, x.ID)
		w.cut(x, some)
		w.ec2.unassign(x, some)
	case act < 40 && x.slots() < n.takes().IPv4PerENI:
		if cidrs, err := w.ec2.assign(x, 1, 0); err == nil {
			w.tracef("%s: somebody puts %v on %s", n.name, cidrs, x.ID)
			n.surprised()
		}
	case act < 60:
		w.attachForeignENI(n)
	case act < 70:
		w.detachForeignENI(n)
	case act < 80 && x != n.primary:
		to := pick(d, "true", "")
		w.tracef("%s: somebody sets no_manage of %s to %q", n.name, x.ID, to)
		n.surprised()
		x.retagged = w.clock
		w.ec2.tag(x, map[string]string{resync.TagNoManage: to})
	case act < 90 && len(w.ec2.subnets) > 1:
		s := w.ec2.subnets[1+d.Below(len(w.ec2.subnets)-1)]
		s.tags = map[string]string{resync.TagSubnetRole: pick(d, "0", "1")}
		w.retagged = true
		w.tracef("somebody sets the role of %s to %v", s.id, s.tags)
	default:
		n.cordon(!n.cordoned)
	}
}

// cut marks the pods whose addresses somebody else has removed in EC2.
func (w *World) cut(x *eni, cidrs []netip.Prefix) {
	x.node.surprised()
	for _, s := range w.livingOn(x) {
		if slices.ContainsFunc(cidrs, func(p netip.Prefix) bool { return p.Contains(s.address) }) {
			s.cut = true
		}
	}
}

// remove deletes an ENI that somebody detached, if it still exists and is unattached.
func (w *World) remove(x *eni) {
	if w.ec2.enis[x.ID] == x && x.Status == resync.StatusAvailable {
		w.tracef("somebody deletes %s", x.ID)
		w.ec2.delete(x)
	}
}

// attachForeignENI attaches an ENI that no daemon created.
func (w *World) attachForeignENI(n *node) {
	device, count := 0, 0
	for {
		taken := false
		for _, x := range w.ec2.enis {
			taken = taken || x.node == n && x.Device == device
		}
		if !taken {
			break
		}
		device++
	}
	for _, x := range w.ec2.enis {
		if x.node == n {
			count++
		}
	}
	if count >= n.takes().ENIsByCard[0] {
		return
	}
	tags := map[string]string{}
	if w.dice.crashes.chance(0.5) {
		tags[resync.TagNoManage] = "true"
	}
	ips := min(w.dice.crashes.Below(3), n.takes().IPv4PerENI-1) // EC2 takes no more from anybody
	x, err := w.ec2.create(w.ec2.subnets[0], ips, 0, "somebody's", tags)
	if err != nil {
		return
	}
	w.tracef("%s: somebody attaches %s at device %d, tags %v", n.name, x.ID, device, tags)
	n.surprised()
	w.ec2.attach(x, n, device)
}

// detachForeignENI detaches and deletes an ENI that no daemon created.
func (w *World) detachForeignENI(n *node) {
	for _, x := range w.ec2.ordered() {
		if x.node == n && x.maker == nil && x != n.primary && x.AttachmentStatus == resync.AttachmentAttached {
			w.tracef("%s: somebody detaches their %s", n.name, x.ID)
			w.cut(x, x.CIDRs())
			w.ec2.detach(x)
			w.after(30*time.Second, func() { w.remove(x) })
			return
		}
	}
}

// crowd takes addresses of a subnet outside the cluster, or frees some.
func (w *World) crowd(s *subnet) {
	d := w.dice.crashes
	if len(s.foreign) > 0 && d.chance(0.5) {
		n := d.between(1, len(s.foreign))
		for _, p := range s.foreign[:n] {
			s.Mark(p, false)
		}
		s.foreign = s.foreign[n:]
		return
	}
	for range d.between(1, max(1, s.Free())) {
		s.foreign = append(s.foreign, s.take(s.Find, 1, d.Below(s.Size()))...)
	}
	w.tracef("%s: %d addresses are in use outside the cluster, %d are free", s.id, len(s.foreign), s.Free())
}

// cordon sets whether the node takes new pods. The daemon reads it from the API.
func (n *node) cordon(to bool) {
	n.cordoned = to
	n.w.tracef("%s: cordoned: %v", n.name, to)
	if p := n.process; p != nil && p.serving {
		p.post(keeper.NodeRead{MaxPods: n.spec.MaxPods, Source: "node", Unschedulable: to})
	}
}

// reboot ends everything on the node; what is in memory is lost.
func (n *node) reboot() {
	w := n.w
	w.stats.Reboots++
	w.tracef("%s: reboots", n.name)
	n.surprised()
	if n.process != nil {
		n.process.end("ends with the node")
	}
	for _, p := range slices.Clone(n.pods) {
		n.bury(p.box)
		p.box.prev = false
		p.doom()
	}
	k := newKernel(w)
	for _, x := range w.ec2.enis {
		if x.node == n && x.AttachmentStatus == resync.AttachmentAttached {
			k.plug(x)
		}
	}
	n.kernel, n.disk = k, disk{}
}
