package sim

import (
	"fmt"
	"time"
)

// What kubelet and the runtime do on a node that gets many pods at once. It is the same for
// our daemon and for the model of upstream.
const (
	// kubeletWidth is the number of sandboxes created in parallel, as in the measurements of
	// upstream (docs/performance.md).
	kubeletWidth = 20
	// sandboxTime is the time of RunPodSandbox with a CNI chain, as measured with containerd
	// 1.6. A failed ADD takes it too: the sandbox is created first and removed afterwards.
	sandboxTime = 96 * time.Millisecond
	// sandboxRetry is the pause before a failed sandbox is retried. It is derived from the
	// measurements: the time that 20 workers waited (20 × 18 s at latency 0), divided by the
	// failed ADDs (330), is 1.11 s in each of the three rows that count them: a second and a
	// sandbox. A real kubelet waits 10 to 15 s, so this favours a daemon that fails ADDs.
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
	waits  []time.Duration // of the running pods
	ended  time.Duration   // when the last pod ran
	failed int             // failed ADDs
}

// run starts the workers when the daemon first serves; wanted is when the pods were first
// wanted.
func (k *kubelet) run(wanted time.Duration) {
	if k.left > 0 || k.ended > 0 {
		return
	}
	k.left, k.begun, k.served = k.pods, wanted, k.w.clock
	for range min(kubeletWidth, k.pods) {
		k.take()
	}
}

// take assigns the next pod to a worker.
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

// addPod runs one ADD of our plugin and daemon, for a pod that stays.
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
