package main

import (
	"fmt"
	"maps"
	"net/netip"
	"sync"
)

// tenant is a living pod.
type tenant struct {
	address netip.Addr
	sandbox string // "" if kubelet created it
}

// ledger records which pod has which address. A tenant enters when its sandbox is up and
// leaves before anything starts to delete it, so in between nobody else may have its address.
type ledger struct {
	mu      sync.Mutex
	tenants map[string]tenant // by pod
}

func newLedger() *ledger { return &ledger{tenants: map[string]tenant{}} }

// enter adds a pod. It returns an error if another pod has its address.
func (l *ledger) enter(pod string, t tenant) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, has := range l.tenants {
		if has.address == t.address && other != pod {
			return fmt.Errorf("pods %s and %s both have %s", other, pod, t.address)
		}
	}
	l.tenants[pod] = t
	return nil
}

func (l *ledger) leave(pod string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tenants, pod)
}

func (l *ledger) living() map[string]tenant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.tenants)
}

// stayed returns the tenants present at both of two moments, which lived all the time in between.
func stayed(before, after map[string]tenant) map[string]tenant {
	out := map[string]tenant{}
	for pod, t := range before {
		if after[pod] == t {
			out[pod] = t
		}
	}
	return out
}
