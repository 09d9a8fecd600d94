package sim

import (
	"fmt"
	"net/netip"
	"time"
)

// What kubelet and the runtime do on a node that is given many pods at once. The same
// holds for ours and for upstream's model.
const (
	// kubeletWidth is how many sandboxes are created in parallel: as many as in the
	// measurements of spec/performance.md §2 ("20 at a time").
	kubeletWidth = 20
	// sandboxTime is RunPodSandbox with a CNI chain, as testbed.md has it for containerd
	// 1.6. A failed ADD takes it too: the sandbox is created first and removed afterwards.
	sandboxTime = 96 * time.Millisecond
	// sandboxRetry is the pause before a failed sandbox is retried. It follows from the
	// measurements: the time that 20 workers waited (20 × 18 s at latency 0), divided by the
	// failed ADDs (330), is 1.11 s in each of the three rows that count them: a second and a
	// sandbox. A real kubelet waits 10 to 15 s, so this favours whoever fails ADDs.
	sandboxRetry = time.Second
)

// kubelet runs a number of pods on a node until each has an address.
type kubelet struct {
	w      *World
	add    func(pod int, done func(ok bool)) // one ADD
	pods   int
	next   int             // pod to start
	left   int             // pods without an address
	begun  time.Duration   // since when the pods are wanted
	served time.Duration   // when the daemon first served
	waits  []time.Duration // of those that run
	ended  time.Duration   // when the last one ran
	failed int             // ADDs
}

// run starts the workers, when the daemon first serves; wanted is since when there are pods
// for it.
func (k *kubelet) run(wanted time.Duration) {
	if k.left > 0 || k.ended > 0 {
		return
	}
	k.left, k.begun, k.served = k.pods, wanted, k.w.clock
	for range min(kubeletWidth, k.pods) {
		k.take()
	}
}

// take gives a worker the next pod.
func (k *kubelet) take() {
	if k.next < k.pods {
		k.next++
		k.try(k.next)
	}
}

func (k *kubelet) try(pod int) {
	k.w.after(sandboxTime, func() {
		k.add(pod, func(ok bool) {
			if !ok {
				k.failed++
				k.w.after(sandboxRetry, func() { k.try(pod) })
				return
			}
			k.waits = append(k.waits, k.w.clock-k.begun)
			if k.left--; k.left == 0 {
				k.ended = k.w.clock
			}
			k.take()
		})
	})
}

// addPod is one ADD of our plugin and daemon, for a pod that stays.
func (n *node) addPod(pod int, done func(ok bool)) {
	n.w.begin(func() {
		p := n.standing[pod]
		if p == nil {
			p = n.bindPod(podName(pod))
			n.standing[pod] = p
		}
		p.box = p.newSandbox()
		ok := n.add(p.box)
		if !ok {
			n.bury(p.box)
			n.untilDeleted(p.box)
		}
		done(ok)
	})
}

func podName(i int) string { return fmt.Sprintf("pod-%d", i) }

// holder records that a pod of upstream's node has an address, which no other pod may have.
func (w *World) holder(a netip.Addr, by string) {
	if other, taken := w.heldBy[a]; taken {
		w.violate("given twice", "%v is given to %s while %s has it", a, by, other)
	}
	w.heldBy[a] = by
}
