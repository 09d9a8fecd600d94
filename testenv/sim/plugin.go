package sim

import (
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/keeper"
)

// This file simulates the plugin: ADD and DEL of one sandbox, in fibers of the pod.

// request is a call of the plugin that a process has not answered yet.
type request struct {
	what     string
	deadline time.Duration // when it must have been answered
	lost     func()        // called when the connection breaks
}

// answerSlack is how much longer than an ADD's wait an answer may take: a write in progress,
// the pause after its failure and the ADD's own write, each limited.
const answerSlack = 3*time.Second + time.Second + 3*time.Second + 100*time.Millisecond

// send sends a request to the node's daemon, waits for the answer and reports whether one
// came.
func send[T any](n *node, what string, wait time.Duration, message func(arrived time.Time, reply func(*T)) keeper.Message) (*T, bool) {
	w := n.w
	w.sleep(w.dice.pods.span(30*time.Microsecond, 400*time.Microsecond))
	p := n.process
	if p == nil || !p.serving {
		return nil, false
	}
	var answer *T
	w.await(func(done func()) {
		r := &request{what: what, deadline: w.clock + wait + answerSlack, lost: done}
		p.requests = append(p.requests, r)
		answered := false
		p.post(message(w.now(), func(a *T) {
			if answered {
				w.violate("answered once", "%s: %s is answered twice", n.name, what)
			}
			answered = true
			p.requests = slices.DeleteFunc(p.requests, func(o *request) bool { return o == r })
			answer = a
			w.after(w.dice.pods.span(20*time.Microsecond, 300*time.Microsecond), done)
		}))
	})
	return answer, answer != nil
}

// add runs ADD. It returns whether the pod is on the network.
func (n *node) add(s *sandbox) bool {
	w, d, k := n.w, n.w.dice.pods, &n.kernel
	w.stats.ADDs++
	early := d.chance(0.5) && k.links[s.pod.link] == nil
	if early {
		k.addLink(s.pod.link, s)
	}
	reply, ok := n.askAddress(s)
	if !ok || !reply.Success {
		if ok {
			w.tracef("%s: ADD of %s failed: %s: %s", n.name, s, reply.Cause, reply.Detail)
			w.stats.failed(reply.Cause)
		} else {
			w.tracef("%s: ADD of %s: no daemon", n.name, s)
			w.stats.failed("no-daemon")
		}
		k.removeLink(s.pod.link, s)
		return false
	}
	w.sleep(d.span(300*time.Microsecond, 12*time.Millisecond))
	switch trouble := d.chance(w.Scenario.PluginFaults) && !w.settling; {
	case trouble && d.chance(0.5): // killed
		n.bury(s)
		return false
	case trouble: // the kernel refuses
		n.bury(s)
		k.removeLink(s.pod.link, s)
		n.del(s, "SetupNSFailed")
		return false
	}
	if !s.alive {
		return false // the node has rebooted meanwhile
	}
	if !early || k.links[s.pod.link] != s {
		k.addLink(s.pod.link, s)
	}
	k.connect(s.pod.link, s.address, s.table)
	s.linked, s.prev = true, true
	if d.chance(0.03) {
		n.again(s)
	}
	return true
}

// again repeats a successful ADD, which must get the same address.
func (n *node) again(s *sandbox) {
	reply, ok := n.askAddress(s)
	if !ok || !s.alive {
		return
	}
	if reply.Success && reply.Allocations[0].IPv4 != s.address.String() {
		n.w.violate("same address", "%s: a repeated ADD of %s got %s, it has %v", n.name, s, reply.Allocations[0].IPv4, s.address)
	}
}

// askAddress makes an ADD's call. Some callers give up waiting.
func (n *node) askAddress(s *sandbox) (*cniwire.AddReply, bool) {
	w := n.w
	return send(n, "ADD of "+s.id, n.spec.AddWait, func(arrived time.Time, reply func(*cniwire.AddReply)) keeper.Message {
		p := n.process
		a := &keeper.Add{
			Arrived: arrived, Deadline: arrived.Add(n.spec.AddWait),
			Request: &cniwire.AddRequest{
				PodName: s.pod.name, PodNamespace: podNamespace, ContainerID: s.id, IfName: ifName, NetworkName: networkName,
			},
		}
		a.Reply = func(r *cniwire.AddReply) {
			if r.Success {
				n.answered(p, s, r)
			}
			reply(r)
		}
		if !w.settling && w.dice.pods.chance(0.02) {
			w.after(w.dice.pods.span(0, 5*time.Second), func() { p.post(keeper.Abandon{Add: a}) })
		}
		return a
	})
}

// answered checks the answer of an ADD when the daemon gives it.
func (n *node) answered(p *process, s *sandbox, r *cniwire.AddReply) {
	w := n.w
	w.stats.Answered++
	if len(r.Allocations) != 1 {
		w.violate("answer", "%s: ADD of %s got %d allocations", n.name, s, len(r.Allocations))
		return
	}
	addr, err := netip.ParseAddr(r.Allocations[0].IPv4)
	if err != nil {
		w.violate("answer", "%s: ADD of %s got %q", n.name, s, r.Allocations[0].IPv4)
		return
	}
	w.tracef("%s: ADD of %s answered with %v", n.name, s, addr)
	again := s.alive && s.address == addr
	s.address, s.table = addr, int(r.Allocations[0].RouteTable)
	if !n.disk.holds(s) {
		w.violate("durable", "%s: ADD of %s is answered with %v before the file has it", n.name, s, addr)
	}
	if again {
		return
	}
	if x := n.carrier(addr); x == nil || x.table() != s.table {
		// Somebody removed it from that ENI, and EC2 may have assigned it to another one.
		w.check("ours", n.mayBeSurprised(), "%s: %v is given to %s, and no ENI of route table %d has it", n.name, addr, s, s.table)
		s.cut = true
	}
	for _, o := range w.nodes {
		if other := o.held[addr]; other != nil && other != s && !other.cut && !(s.cut && o != n) {
			w.violate("given twice", "%v is given to %s while %s has it", addr, s, other)
		}
	}
	if rest, known := n.rested[addr]; known && rest.by == p && w.clock-rest.at < n.spec.Policy.Cooldown && !n.mayBeSurprised() {
		w.violate("cooldown", "%s: %v is given to %s %v after its last pod", n.name, addr, s, w.clock-rest.at)
	}
	if rest, known := n.rested[addr]; known && rest.by == p && rest.passes < 2 && w.Scenario.HostFaults == 0 && !n.mayBeSurprised() {
		w.violate("no stale connections", "%s: %v is given to %s after %d passes over connection tracking", n.name, addr, s, rest.passes)
	}
	s.alive, n.held[addr] = true, s
}

// carrier returns the node's ENI with an address, unless the ENI is detaching.
func (n *node) carrier(a netip.Addr) *eni {
	for _, x := range n.attached {
		if x.AttachmentStatus != statusDetaching && x.has(a) {
			return x
		}
	}
	return nil
}

// del runs DEL. It returns false if the runtime must retry.
func (n *node) del(s *sandbox, reason string) bool {
	w := n.w
	w.stats.DELs++
	var by *process
	reply, ok := send(n, "DEL of "+s.id, 0, func(arrived time.Time, reply func(*cniwire.DelReply)) keeper.Message {
		by = n.process
		return &keeper.Del{
			Request: &cniwire.DelRequest{
				PodName: s.pod.name, PodNamespace: podNamespace, ContainerID: s.id, IfName: ifName, NetworkName: networkName, Reason: reason,
			},
			Reply: func(r *cniwire.DelReply) {
				if r.Success {
					n.freed(by, s, r, arrived)
				}
				reply(r)
			},
		}
	})
	switch {
	case !ok:
		w.tracef("%s: DEL of %s: no daemon", n.name, s)
		n.cleanUpFromResult(s)
		return true
	case reply.Unknown:
		if holds(reply.Allocations, s.address) {
			s.prev = false // a newer sandbox of the pod has the address
		}
		n.cleanUpFromResult(s)
		return true
	case !reply.Success:
		w.tracef("%s: DEL of %s failed: %s: %s", n.name, s, reply.Cause, reply.Detail)
		return false
	}
	w.sleep(w.dice.pods.span(100*time.Microsecond, 4*time.Millisecond))
	if addr, err := netip.ParseAddr(reply.Allocations[0].IPv4); err == nil {
		n.kernel.disconnect(addr)
	}
	s.prev = false
	return true
}

func holds(all []cniwire.Allocation, address netip.Addr) bool {
	return slices.ContainsFunc(all, func(a cniwire.Allocation) bool { return a.IPv4 == address.String() })
}

// cleanUpFromResult does what the plugin does when the daemon does not know a sandbox's address: it
// uses the ADD's result, unless another pod has the address by now. A newer sandbox of the
// same pod has the same link name, so only the daemon's file distinguishes them. If the file is
// lost as well, the newer sandbox loses its network.
func (n *node) cleanUpFromResult(s *sandbox) {
	r := n.kernel.routes[s.address]
	if s.prev && r != nil && (r.link == "" || r.link == s.pod.link) && !n.disk.holdsForAnother(s) {
		n.kernel.disconnect(s.address)
		if o := n.held[s.address]; o != nil && o != s {
			o.cut, o.lost = true, true
		}
	}
	s.prev = false
}

// freed checks the answer of a DEL.
func (n *node) freed(p *process, s *sandbox, r *cniwire.DelReply, arrived time.Time) {
	addr, err := netip.ParseAddr(r.Allocations[0].IPv4)
	if err != nil {
		n.w.violate("answer", "%s: DEL of %s got %q", n.name, s, r.Allocations[0].IPv4)
		return
	}
	n.w.tracef("%s: DEL of %s freed %v", n.name, s, addr)
	if n.disk.there && n.disk.holds(&sandbox{id: s.id, address: addr}) {
		n.w.violate("durable", "%s: DEL of %s is answered while the file still has %v", n.name, s, addr)
	}
	if r.Allocations[0].RouteTable == 0 {
		return // it was on no ENI in the book, so it has no cooldown
	}
	n.rested[addr] = release{at: max(arrived.Sub(epoch), n.w.clock-time.Second), by: p}
}
