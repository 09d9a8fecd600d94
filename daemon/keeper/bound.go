package keeper

import (
	"time"

	"cnictl/daemon/ipam"
)

// podName names a pod.
type podName struct{ namespace, name string }

// PodsBound are the pods of the node that will ask for an address and have none, as the
// API server shows them. The pool grows for them before they ask.
type PodsBound struct{ Pods []ipam.Pod }

func (m PodsBound) handle(k *Keeper, now time.Time) {
	bound := make(map[podName]bool, len(m.Pods))
	for _, p := range m.Pods {
		bound[podName{p.Namespace, p.Name}] = true
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

// expected counts the bound pods that do not wait yet.
func (k *Keeper) expected() int {
	n := len(k.bound)
	if n == 0 {
		return 0
	}
	for _, r := range k.waiting {
		if k.bound[podName{r.Request.PodNamespace, r.Request.PodName}] {
			n--
		}
	}
	return max(0, n)
}
