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

// ledger knows who lives at which address. A tenant enters when its sandbox is up and
// leaves before anything is asked to end it, so that in between the address is its own.
type ledger struct {
	mu      sync.Mutex
	tenants map[string]tenant // by pod
}

func newLedger() *ledger { return &ledger{tenants: map[string]tenant{}} }

// enter takes a pod in; the error is that its address is another's too.
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

// stayed are the tenants of both of two moments: those who lived all the time between.
func stayed(before, after map[string]tenant) map[string]tenant {
	out := map[string]tenant{}
	for pod, t := range before {
		if after[pod] == t {
			out[pod] = t
		}
	}
	return out
}
