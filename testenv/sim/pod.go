package sim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
)

// pod is a pod as kubelet and the runtime see it.
type pod struct {
	node *node
	name string
	link string // on the host
	box  *sandbox

	doomed bool // to be deleted
	ending bool // being deleted: no ADD is in progress
	stir   func()
	gone   bool
	since  time.Duration // since when it has wanted an address
}

const podNamespace = "default"

// sandbox is one attempt to run a pod. CNI's commands refer to sandboxes.
type sandbox struct {
	pod     *pod
	id      string
	address netip.Addr
	table   int

	alive  bool // its ADD was answered, and it is not being deleted
	linked bool // the plugin has connected it in the kernel
	cut    bool // somebody else removed its address in EC2
	lost   bool // the file with its address is lost, and the kernel does not show it yet
	prev   bool // the runtime has the result of its ADD
}

func (s *sandbox) String() string { return s.pod.name + "/" + s.id }

func (s *sandbox) key() ipam.Sandbox {
	return ipam.Sandbox{Network: networkName, ContainerID: s.id, IfName: ifName}
}

const networkName, ifName = "aws-cni", "eth0"

// bindPod creates a pod on the node.
func (n *node) bindPod(name string) *pod {
	p := &pod{node: n, name: name, link: netnames.HostVeth(vethPrefix, podNamespace, name, 0), since: n.w.clock}
	n.pods = append(n.pods, p)
	n.w.stats.Pods++
	return p
}

// newPod creates a pod with a lifetime, and runs it.
func (n *node) newPod(name string, life time.Duration) *pod {
	if name == "" {
		n.lastPod++
		name = fmt.Sprintf("pod-%d", n.lastPod)
	}
	p := n.bindPod(name)
	n.w.begin(func() {
		p.live(life)
		p.gone = true
		n.pods = slices.DeleteFunc(n.pods, func(o *pod) bool { return o == p })
	})
	return p
}

// live runs a pod from its creation to its end.
func (p *pod) live(life time.Duration) {
	pause := time.Second
	for {
		s := p.newSandbox()
		p.box = s
		p.node.w.tracef("%s: %s begins", p.node.name, s)
		if p.node.add(s) {
			break
		}
		p.ending = p.doomed
		p.retire(s)
		p.pause(p.node.w.dice.pods.span(pause/2, pause))
		pause = min(2*pause, time.Minute)
		if p.doomed {
			return
		}
	}
	p.pause(life)
	p.finish()
}

func (p *pod) newSandbox() *sandbox {
	p.node.lastBox++
	return &sandbox{pod: p, id: fmt.Sprintf("%s.box-%d", p.node.name, p.node.lastBox)}
}

// pause waits, at most until the pod is doomed.
func (p *pod) pause(d time.Duration) {
	if p.doomed {
		return
	}
	p.node.w.await(func(done func()) {
		p.stir = done
		p.node.w.after(d, done)
	})
	p.stir = nil
}

// doom deletes the pod.
func (p *pod) doom() {
	p.doomed = true
	if stir := p.stir; stir != nil {
		stir()
	}
}

// retire does what the runtime does with a sandbox that did not come up: it deletes it like
// any other.
func (p *pod) retire(s *sandbox) {
	n := p.node
	n.bury(s)
	if n.w.settling || n.w.dice.pods.chance(0.9) {
		n.untilDeleted(s)
	}
	n.kernel.removeLink(p.link, s)
}

// finish ends a running pod, in one of the ways in which DELs come.
func (p *pod) finish() {
	n, s, d := p.node, p.box, p.node.w.dice.pods
	n.w.tracef("%s: %s ends", n.name, s)
	p.ending = true
	n.bury(s)
	part := d.Below(100)
	if n.w.settling {
		part = 99
	}
	switch {
	case part < n.w.Scenario.LostDELs: // the runtime forgets the DEL
		n.w.stats.LostDELs++
		n.kernel.removeLink(p.link, s)
	case part < 10: // the DEL comes late, after the namespace is gone
		n.kernel.removeLink(p.link, s)
		n.w.sleep(d.span(5*time.Second, 3*time.Minute))
		n.untilDeleted(s)
	case part < 20: // in the wrong order
		n.kernel.removeLink(p.link, s)
		n.untilDeleted(s)
	case part < 25: // twice
		n.untilDeleted(s)
		n.kernel.removeLink(p.link, s)
		n.w.sleep(d.span(0, 5*time.Second))
		n.untilDeleted(s)
	default:
		n.untilDeleted(s)
		n.w.sleep(d.span(10*time.Millisecond, 500*time.Millisecond))
		n.kernel.removeLink(p.link, s)
	}
}

// bury ends a sandbox's claim to its address.
func (n *node) bury(s *sandbox) {
	if s.alive && n.held[s.address] == s {
		delete(n.held, s.address)
	}
	s.alive = false
}

// untilDeleted repeats DEL until it succeeds, as the runtime does.
func (n *node) untilDeleted(s *sandbox) {
	for !n.del(s, "PodDeleted") {
		n.w.sleep(n.w.dice.pods.span(time.Second, 10*time.Second))
	}
}
