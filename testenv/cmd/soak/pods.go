package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/kube/cluster"
)

const (
	namespace   = "default" // of all pods
	triesPerPod = 12        // kubelet does not limit them
	// retryAfter is shorter than kubelet's 10 s: waiting slots test nothing.
	retryAfter = 2 * time.Second
	// kubeletWithin bounds a pod's start or end through kubelet, which waits 10 s or more after a
	// failed attempt.
	kubeletWithin = 4 * time.Minute
)

// nameOf names every pod. Every third reuses the name of its predecessor in the slot, as in a
// StatefulSet: its host veth has the same name, and the old sandbox may still exist.
func nameOf(slot, round int) string {
	if round%3 == 2 {
		round--
	}
	return fmt.Sprintf("pod-%d-%d", slot, round)
}

// live waits as long as a pod lives: for a short time that varies between pods.
func (s *soak) live(slot, round int) {
	frame.Pause(s.ctx, time.Duration(200+(slot*7+round*13)%15*100)*time.Millisecond)
}

// enter adds a running pod to the ledger.
func (s *soak) enter(uid string, t tenant) {
	if err := s.ledger.enter(uid, t); err != nil {
		s.tally.mistake("%s", err)
	}
	if err := s.machine.Ping(t.address, 10*time.Second); err != nil { // the node is busy
		s.tally.mistake("the node does not reach a pod: %s", general(err.Error()))
	}
}

// throughCRI runs and ends a pod through containerd's CRI, as kubelet does.
func (s *soak) throughCRI(slot, round int) {
	pod := &cri.PodSandboxMetadata{Namespace: namespace, Name: nameOf(slot, round), Uid: string(uuid.NewUUID())}
	var id string
	err := s.tried(func() error {
		began := time.Now()
		sandbox, address, err := s.cri.run(s.ctx, pod)
		pod.Attempt++
		if id = sandbox; err == nil {
			s.tally.up(time.Since(began))
			s.enter(pod.Uid, tenant{address: address, sandbox: id})
		} else if id != "" { // it runs, but is unusable
			s.tally.mistake("%s", general(err.Error()))
		}
		return err
	})
	if err != nil {
		s.tally.never(pod.Name, err)
		return
	}
	s.live(slot, round)
	s.ledger.leave(pod.Uid)
	for range 2 { // kubelet stops every sandbox twice, and removes it later
		err := s.tried(func() error {
			_, err := s.cri.client.StopPodSandbox(s.ctx, &cri.StopPodSandboxRequest{PodSandboxId: id})
			return err
		})
		if err != nil {
			s.tally.never(pod.Name, fmt.Errorf("its sandbox is not stopped: %w", err))
			return
		}
	}
	s.removal.Go(func() {
		if _, err := s.cri.client.RemovePodSandbox(s.ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
			s.tally.mistake("remove a sandbox: %s", general(err.Error()))
		}
	})
	s.tally.gone()
}

// tried repeats f until it succeeds, a limited number of times.
func (s *soak) tried(f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if err == nil || s.ctx.Err() != nil || try == triesPerPod {
			return err
		}
		s.tally.retry(err)
		frame.Pause(s.ctx, retryAfter)
	}
}

// throughKubelet runs and ends a pod through the API server, scheduler and kubelet.
func (s *soak) throughKubelet(slot, round int) {
	name, began := nameOf(slot, round), time.Now()
	made, err := cluster.Create(s.ctx, s.cluster, namespace, podOf(name))
	if err != nil {
		s.tally.never(name, err)
		return
	}
	uid := string(made.UID)
	var address netip.Addr
	err = s.await(name, "its start", func(p *corev1.Pod) bool {
		address = addressOf(p)
		return address.IsValid()
	})
	up := err == nil
	if up {
		s.tally.up(time.Since(began))
		s.enter(uid, tenant{address: address})
	} else {
		s.tally.never(name, err)
	}
	s.live(slot, round)
	s.ledger.leave(uid)
	err = cluster.Delete[corev1.Pod](s.ctx, s.cluster, namespace, name)
	if err == nil || apierrors.IsNotFound(err) {
		err = s.await(name, "its end", func(p *corev1.Pod) bool { return p == nil })
	}
	if err != nil {
		s.tally.never(name, fmt.Errorf("it was not deleted: %w", err))
	} else if up {
		s.tally.gone()
	}
}

// await reads a pod, nil if there is none, until a condition holds.
func (s *soak) await(name, what string, done func(*corev1.Pod) bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, kubeletWithin)
	defer cancel()
	return cluster.Await(ctx, what, func() error {
		p, err := cluster.Get[corev1.Pod](ctx, s.cluster, namespace, name)
		if apierrors.IsNotFound(err) {
			p, err = nil, nil
		}
		if err == nil && !done(p) {
			err = fmt.Errorf("pod %+v", p)
		}
		return err
	})
}

// addressOf returns the address of a pod that is ready.
func addressOf(p *corev1.Pod) (a netip.Addr) {
	if p != nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}) {
		a, _ = netip.ParseAddr(p.Status.PodIP)
	}
	return a
}

func podOf(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			DNSPolicy:                     corev1.DNSDefault,
			Containers:                    []corev1.Container{{Name: "app", Image: cluster.ProbeImage, ImagePullPolicy: corev1.PullNever}},
		},
	}
}

// countEvents counts the sandboxes that kubelet had to retry.
func (s *soak) countEvents() {
	warnings := metav1.ListOptions{FieldSelector: "type=Warning,involvedObject.kind=Pod"}
	for _, e := range must(cluster.List[corev1.Event](s.ctx, s.cluster, namespace, warnings)) {
		for range max(e.Count, 1) {
			s.tally.retry(errors.New(e.Reason + ": " + e.Message))
		}
	}
}
