package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	i := identity{name: nameOf(slot, round), uid: newUID()}
	id, err := s.tried(func() (id string, err error) {
		began := time.Now()
		id, address, err := s.cri.run(s.ctx, i)
		i.attempt++
		if err == nil {
			s.tally.up(time.Since(began))
			s.enter(i.uid, tenant{address: address, sandbox: id})
		} else if id != "" { // it runs, but is unusable
			s.tally.mistake("%s", general(err.Error()))
		}
		return id, err
	})
	if err != nil {
		s.tally.never(i.name, err)
		return
	}
	s.live(slot, round)
	s.ledger.leave(i.uid)
	for range 2 { // kubelet stops every sandbox twice, and removes it later
		if _, err := s.tried(func() (string, error) { return "", s.cri.stop(s.ctx, id) }); err != nil {
			s.tally.never(i.name, fmt.Errorf("its sandbox is not stopped: %w", err))
			return
		}
	}
	s.removal.Go(func() {
		if err := s.cri.remove(s.ctx, id); err != nil {
			s.tally.mistake("remove a sandbox: %s", general(err.Error()))
		}
	})
	s.tally.gone()
}

// tried repeats f until it succeeds, a limited number of times.
func (s *soak) tried(f func() (string, error)) (id string, err error) {
	for try := 1; ; try++ {
		if id, err = f(); err == nil || s.ctx.Err() != nil || try == triesPerPod {
			return id, err
		}
		s.tally.retry(err)
		frame.Pause(s.ctx, retryAfter)
	}
}

// newUID returns a pod UID: each pod gets a new one, even if it reuses a name.
func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
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
	p, err := s.await(name, func(p *corev1.Pod) bool { return p != nil && (p.Status.Phase == corev1.PodFailed || ready(p)) })
	up := err == nil && ready(p)
	switch {
	case up:
		s.tally.up(time.Since(began))
		s.enter(uid, tenant{address: netip.MustParseAddr(p.Status.PodIP)})
	case err == nil:
		s.tally.never(name, fmt.Errorf("%s: %s", p.Status.Reason, p.Status.Message))
	default:
		s.tally.never(name, err)
	}
	s.live(slot, round)
	s.ledger.leave(uid)
	err = cluster.Delete[corev1.Pod](s.ctx, s.cluster, namespace, name)
	if err == nil || apierrors.IsNotFound(err) {
		_, err = s.await(name, func(p *corev1.Pod) bool { return p == nil })
	}
	if err != nil {
		s.tally.never(name, fmt.Errorf("it was not deleted: %w", err))
	} else if up {
		s.tally.gone()
	}
}

// await reads a pod, nil if there is none, until a condition holds.
func (s *soak) await(name string, done func(*corev1.Pod) bool) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(s.ctx, kubeletWithin)
	defer cancel()
	for {
		p, err := cluster.Get[corev1.Pod](ctx, s.cluster, namespace, name)
		if apierrors.IsNotFound(err) {
			p, err = nil, nil
		}
		if err == nil && done(p) {
			return p, nil
		}
		if frame.Pause(ctx, 500*time.Millisecond); ctx.Err() != nil {
			return nil, fmt.Errorf("%w; last: %+v, %w", ctx.Err(), p, err)
		}
	}
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			_, err := netip.ParseAddr(p.Status.PodIP)
			return c.Status == corev1.ConditionTrue && err == nil
		}
	}
	return false
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
