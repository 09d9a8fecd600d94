package keeper

import (
	"time"

	"cnictl/daemon/ipam"
)

// podName names a pod.
type podName struct{ namespace, name string }

// boundPod is a pod of the node that will ask for an address.
type boundPod struct {
	every bool // it will ask for one per network card
	since time.Time
}

// boundPatience is how long an address is kept for a pod that does not ask for it. What its
// sandbox waits for, such as a volume, comes sooner or not soon.
const boundPatience = 5 * time.Minute

// PodsBound lists the pods of the node that will ask for an address and have none, as the
// API server shows them. The pool grows for them before they ask.
//
// A pod with an interface per network card has Interfaces 2 or more.
type PodsBound struct{ Pods []ipam.Pod }

func (m PodsBound) handle(k *Keeper, now time.Time) {
	bound := make(map[podName]boundPod, len(m.Pods))
	for _, p := range m.Pods {
		name := podName{p.Namespace, p.Name}
		pod := boundPod{every: p.Interfaces > 1, since: now}
		if known, ok := k.bound[name]; ok {
			pod.since = known.since
		}
		bound[name] = pod
	}
	// Their status shows an address only seconds after they got it.
	for a := range k.book.Assignments() {
		delete(bound, podName{a.Pod.Namespace, a.Pod.Name})
	}
	if len(bound) > len(k.bound) {
		k.record(now, PodsExpected{Pods: len(bound)})
	}
	k.bound, k.boundKnown = bound, true
}

// PodsUnseen reports that the API server no longer shows which pods are bound, so the last
// report ages. The Keeper remembers how long each pod has not asked; otherwise every blip of
// the API server would reserve an address for all of them again.
type PodsUnseen struct{}

func (m PodsUnseen) handle(k *Keeper, _ time.Time) { k.boundKnown = false }

// expected counts the bound pods that are not waiting yet, per card; nil if unknown.
func (k *Keeper) expected(now time.Time) []int {
	if !k.boundKnown {
		return nil
	}
	out := make([]int, len(k.limits.ENIsByCard))
	if len(k.bound) == 0 {
		return out
	}
	waits := k.waitingPods()
	cards := k.cards()
	for name, pod := range k.bound {
		switch {
		case waits[name] || now.Sub(pod.since) >= boundPatience:
		case pod.every && k.settings.MultiNIC:
			for _, card := range cards {
				out[card]++
			}
		default:
			out[0]++
		}
	}
	return out
}
