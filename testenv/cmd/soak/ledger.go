package main

import (
	"fmt"
	"maps"
	"net/netip"
	"sync"
)

// tenant is a pod while it lives.
type tenant struct {
	address netip.Addr
	sandbox string // "" when kubelet made it
}

// ledger records which pod has which address. A tenant enters when its sandbox is up and
// leaves before anything starts to delete it, so in between the address must be its own.
type ledger struct {
	mu      sync.Mutex
	tenants map[string]tenant // by pod
}

func newLedger() *ledger { return &ledger{tenants: map[string]tenant{}} }

// enter adds a pod; it is an error if another one has its address.
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

// stayed are the tenants at both of two moments, which lived all the time between them.
func stayed(before, after map[string]tenant) map[string]tenant {
	out := map[string]tenant{}
	for pod, t := range before {
		if after[pod] == t {
			out[pod] = t
		}
	}
	return out
}
