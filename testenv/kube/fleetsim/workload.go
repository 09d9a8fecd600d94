package fleetsim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// workload is one of the node's pods.
type workload struct {
	namespace, name string
	number          int
	created         time.Time
	address         netip.Addr // zero while it waits
	waits           time.Time  // since when it has waited; zero if it does not
	tries           int        // failed ADDs
	version         uint64
	wantsBranch     bool // needs a branch ENI instead of an address from the pool
	vlan            int  // of its branch ENI; 0 until it has one
}

// ready reports whether the pod has its network.
func (p *workload) ready() bool { return p.waits.IsZero() && (!p.wantsBranch || p.vlan > 0) }

func (p *workload) sandbox() ipam.Sandbox {
	return ipam.Sandbox{Network: "aws-cni", ContainerID: fmt.Sprintf("%s/%s", p.namespace, p.name), IfName: "eth0"}
}

func (p *workload) ref() *introspect.PodRef {
	return &introspect.PodRef{Namespace: p.namespace, Name: p.name}
}

// apps are the pods' deployments, with their namespaces.
var apps = []struct{ namespace, name string }{
	{"shop", "cart"}, {"shop", "web"}, {"shop", "search"}, {"payments", "ledger"}, {"payments", "till"},
	{"batch", "resize"}, {"batch", "report"}, {"default", "echo"}, {"observability", "collector"},
}

func namespaces() []string {
	out := []string{systemNamespace, "kube-public"}
	for _, a := range apps {
		if !slices.Contains(out, a.namespace) {
			out = append(out, a.namespace)
		}
	}
	slices.Sort(out)
	return out
}

func (w *world) newPod(created time.Time) *workload {
	app := apps[w.rnd.IntN(len(apps))]
	w.made++
	p := &workload{
		namespace: app.namespace, number: w.made, created: created.Truncate(time.Second), version: firstVersion,
		name: app.name + "-" + suffix(w.node.sim.hash(w.rnd.IntN(4), app.name), 9) + "-" + suffix(w.node.sim.hash(w.node.index, fmt.Sprint(w.made)), 5),
	}
	w.pods = append(w.pods, p)
	return p
}

// reported returns a pod's reference as the daemon reports it.
func (w *world) reported(ref introspect.PodRef) introspect.PodRef {
	return introspect.PodRef{Namespace: ref.Namespace, Name: w.node.garble(ref.Name)}
}

// assign assigns an address to a pod if one is free.
func (w *world) assign(p *workload) bool {
	a, ok := w.Assign(p.sandbox(), ipam.Pod{Namespace: p.namespace, Name: p.name, Interfaces: 1})
	w.check()
	if !ok {
		return false
	}
	w.adds.Total++
	p.address, p.waits = a.Address, time.Time{}
	w.note(introspect.Event{Kind: introspect.EventAddressAssigned, Pod: p.ref(), Address: a.Address, ENIID: string(a.ENI)})
	return true
}

// drop deletes a pod.
func (w *world) drop(i int) {
	p := w.pods[i]
	was := w.node.podObject(p)
	w.pods = slices.Delete(w.pods, i, i+1)
	if p.waits.IsZero() {
		w.Apply(ipam.Unassign{Sandbox: p.sandbox()})
		w.check()
		w.dels.Total++
		w.note(introspect.Event{Kind: introspect.EventAddressReleased, Pod: p.ref(), Address: p.address})
	}
	w.published(p, was, deleted)
}

// serveWaiting assigns the free addresses to the waiting pods, oldest first.
func (w *world) serveWaiting() {
	for _, p := range w.pods {
		if p.waits.IsZero() {
			continue
		}
		was := w.node.podObject(p)
		if !w.assign(p) {
			return
		}
		w.published(p, was, changed)
	}
}

// giveUp fails an ADD that waited too long; kubelet retries it.
func (w *world) giveUp(p *workload) {
	code, detail := cause.PoolDry, "the pool could not grow in time"
	if blocked, text, ok := warmpool.Blocked(w.snapshot(), w.node.profile.policy, w.Now, 0); ok {
		code, detail = blocked, text
	}
	p.tries++
	w.adds.Total++
	*w.adds.Failed++
	w.adds.Causes[string(code)]++
	w.failures = append(w.failures, introspect.Failure{
		At: w.Now, Pod: *p.ref(), Cause: string(code), Title: code.Title(), Detail: detail,
		WaitedMS: w.Now.Sub(p.waits).Milliseconds(), Transient: code == cause.PoolDry || code == cause.AddressesCooling,
	})
	if len(w.failures) > maxFailures {
		w.failures = slices.Delete(w.failures, 0, 1)
	}
	w.note(introspect.Event{Kind: introspect.EventADDFailed, Pod: p.ref(), Cause: string(code), Message: code.Title()})
	w.fail("ADD", code, code.Title())
	p.waits = w.Now
	w.publishEvent(p, detail)
}
