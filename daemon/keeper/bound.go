package keeper

import (
	"time"

	"cnictl/daemon/ipam"
)

// podName names a pod.
type podName struct{ namespace, name string }

// PodsBound are the pods of the node that will ask for an address and have none, as the
// API server shows them. The pool grows for them before they ask.
//
// A pod with an interface per network card has Interfaces 2 or more.
type PodsBound struct{ Pods []ipam.Pod }

func (m PodsBound) handle(k *Keeper, now time.Time) {
	bound := make(map[podName]bool, len(m.Pods))
	for _, p := range m.Pods {
		bound[podName{p.Namespace, p.Name}] = p.Interfaces > 1
	}
	// Their status tells of an address seconds after they got it.
	for a := range k.book.Assignments() {
		delete(bound, podName{a.Pod.Namespace, a.Pod.Name})
	}
	if len(bound) > len(k.bound) {
		k.record(Event{Kind: PodsExpected, At: now, Count: len(bound)})
	}
	k.bound = bound
}

// expected counts the bound pods that do not wait yet, per card; nil: nobody has told.
func (k *Keeper) expected() []int {
	if k.bound == nil {
		return nil
	}
	out := make([]int, len(k.limits.ENIsByCard))
	if len(k.bound) == 0 {
		return out
	}
	waits := make(map[podName]bool, len(k.waiting))
	for _, r := range k.waiting {
		waits[podName{r.Request.PodNamespace, r.Request.PodName}] = true
	}
	cards := k.cards()
	for pod, every := range k.bound {
		switch {
		case waits[pod]:
		case every && k.settings.MultiNIC:
			for _, card := range cards {
				out[card]++
			}
		default:
			out[0]++
		}
	}
	return out
}
