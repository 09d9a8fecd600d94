package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

const (
	// triesPerPod bounds the attempts. kubelet does not limit them.
	triesPerPod = 12
	// retryAfter is shorter than kubelet's 10 s: waiting slots test nothing.
	retryAfter = 2 * time.Second
	// pingWithin is long, because the node is busy.
	pingWithin = 10 * time.Second
)

// namespace holds all pods.
const namespace = "default"

// nameOf names every pod. Every third reuses the name of its predecessor in the slot, as in a
// StatefulSet: its host veth has the same name, and the old sandbox may still exist.
func nameOf(slot, round int) string {
	if round%3 == 2 {
		round--
	}
	return fmt.Sprintf("pod-%d-%d", slot, round)
}

// lifetime is how long a pod lives: short, and varying between pods.
func lifetime(slot, round int) time.Duration {
	return time.Duration(200+(slot*7+round*13)%15*100) * time.Millisecond
}

// slots runs pods one after another in several slots, until the total is reached.
func slots(ctx context.Context, parallel, pods int, one func(ctx context.Context, slot, round int)) {
	var wg sync.WaitGroup
	for slot := range min(parallel, pods) {
		wg.Go(func() {
			for round := 0; round*parallel+slot < pods && ctx.Err() == nil; round++ {
				one(ctx, slot, round)
			}
		})
	}
	wg.Wait()
}

// throughCRI runs and ends a pod through containerd's CRI, as kubelet does.
func (s *soak) throughCRI(ctx context.Context, slot, round int) {
	i := identity{namespace: namespace, name: nameOf(slot, round), uid: newUID()}
	id, ok := s.runSandbox(ctx, &i)
	if !ok {
		return
	}
	wait(ctx, lifetime(slot, round))
	s.ledger.leave(i.uid)
	// kubelet stops every sandbox twice, and removes it later.
	for range 2 {
		if err := s.stopSandbox(ctx, id); err != nil {
			s.tally.never(i.name, fmt.Errorf("its sandbox is not stopped: %w", err))
			return
		}
	}
	s.removal.Go(func() {
		if err := s.cri.remove(ctx, id); err != nil {
			s.tally.mistake("remove a sandbox: %s", general(err.Error()))
		}
	})
	s.tally.gone()
}

// runSandbox retries until the sandbox is up and in the ledger.
func (s *soak) runSandbox(ctx context.Context, i *identity) (id string, ok bool) {
	for {
		began := time.Now()
		id, address, err := s.cri.run(ctx, *i)
		if err == nil {
			s.tally.up(time.Since(began))
			if err := s.ledger.enter(i.uid, tenant{address: address, sandbox: id}); err != nil {
				s.tally.mistake("%s", err)
			}
			if err := s.machine.Ping(address, pingWithin); err != nil {
				s.tally.mistake("the node does not reach a pod: %s", general(err.Error()))
			}
			return id, true
		}
		if id != "" { // it runs, but is unusable
			s.tally.mistake("%s", general(err.Error()))
		}
		if ctx.Err() != nil || i.attempt+1 == triesPerPod {
			s.tally.never(i.name, err)
			return "", false
		}
		s.tally.retry(err)
		i.attempt++
		wait(ctx, retryAfter)
	}
}

func (s *soak) stopSandbox(ctx context.Context, id string) (err error) {
	for range triesPerPod {
		if err = s.cri.stop(ctx, id); err == nil || ctx.Err() != nil {
			return err
		}
		s.tally.retry(fmt.Errorf("stop: %w", err))
		wait(ctx, retryAfter)
	}
	return err
}

// wait waits for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// newUID returns a pod UID: each pod gets a new one, even if it reuses a name.
func newUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
