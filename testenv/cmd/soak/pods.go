package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnictl/testenv/cluster"
)

const (
	listEvery = 500 * time.Millisecond
	// upWithin bounds a pod's start through kubelet, which waits 10 s or more after a
	// failed attempt.
	upWithin   = 4 * time.Minute
	goneWithin = 4 * time.Minute
)

// board holds the API server's pods, for goroutines that wait for some of them.
type board struct {
	mu   sync.Mutex
	pods map[string]*corev1.Pod
	news chan struct{} // closed by the next list
}

func newBoard() *board { return &board{pods: map[string]*corev1.Pod{}, news: make(chan struct{})} }

func (b *board) put(list []corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.pods)
	for i := range list {
		b.pods[list[i].Name] = &list[i]
	}
	close(b.news)
	b.news = make(chan struct{})
}

// see returns a pod, nil if there is none, and a channel that is closed at the next change.
func (b *board) see(name string) (*corev1.Pod, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pods[name], b.news
}

// await waits until a pod, nil if there is none, meets the wanted condition.
func (b *board) await(ctx context.Context, name string, within time.Duration, wanted func(*corev1.Pod) (bool, error)) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		p, news := b.see(name)
		if ok, err := wanted(p); ok || err != nil {
			return p, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			if p == nil {
				return nil, fmt.Errorf("not there: %w", ctx.Err())
			}
			return p, fmt.Errorf("phase %s, address %q: %w", p.Status.Phase, p.Status.PodIP, ctx.Err())
		}
	}
}

// posting keeps the board up to date until the context ends.
func (s *soak) posting(ctx context.Context) {
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pods, err := cluster.List[corev1.Pod](ctx, s.cluster, namespace, metav1.ListOptions{})
		if err == nil {
			s.board.put(pods)
		} else if ctx.Err() == nil {
			s.tally.mistake("list pods: %s", err)
		}
	}
}

// throughKubelet runs and ends a pod through the API server, scheduler and kubelet.
func (s *soak) throughKubelet(ctx context.Context, slot, round int) {
	name := nameOf(slot, round)
	began := time.Now()
	made, err := cluster.Create(ctx, s.cluster, namespace, podOf(name))
	if err != nil {
		s.tally.never(name, err)
		return
	}
	uid := made.UID
	p, err := s.board.await(ctx, name, upWithin, func(p *corev1.Pod) (bool, error) {
		if p != nil && p.UID == uid && p.Status.Phase == corev1.PodFailed {
			return false, fmt.Errorf("%s: %s", p.Status.Reason, p.Status.Message)
		}
		return p != nil && p.UID == uid && ready(p), nil
	})
	if err == nil {
		s.tally.up(time.Since(began))
		err = s.settle(p)
	}
	if err != nil {
		s.tally.never(name, err)
	}
	wait(ctx, lifetime(slot, round))
	s.ledger.leave(string(uid))
	if err := s.deletePod(ctx, name); err != nil {
		s.tally.never(name, fmt.Errorf("it was not deleted: %w", err))
		return
	}
	if err == nil {
		s.tally.gone()
	}
}

// settle adds a running pod to the ledger.
func (s *soak) settle(p *corev1.Pod) error {
	address, err := netip.ParseAddr(p.Status.PodIP)
	if err != nil {
		return err
	}
	if err := s.ledger.enter(string(p.UID), tenant{address: address}); err != nil {
		s.tally.mistake("%s", err)
	}
	if err := s.machine.Ping(address, pingWithin); err != nil {
		s.tally.mistake("the node does not reach a pod: %s", general(err.Error()))
	}
	return nil
}

func (s *soak) deletePod(ctx context.Context, name string) error {
	err := cluster.Delete[corev1.Pod](ctx, s.cluster, namespace, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err = s.board.await(ctx, name, goneWithin, func(p *corev1.Pod) (bool, error) { return p == nil, nil })
	return err
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.Status.PodIP != ""
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

// sandboxEvents counts the sandboxes that kubelet had to retry.
func (s *soak) sandboxEvents(ctx context.Context) error {
	events, err := cluster.List[corev1.Event](ctx, s.cluster, namespace, metav1.ListOptions{FieldSelector: "type=Warning,involvedObject.kind=Pod"})
	if err != nil {
		return err
	}
	for _, e := range events {
		for range max(e.Count, 1) {
			s.tally.retry(errors.New(e.Reason + ": " + e.Message))
		}
	}
	return nil
}
