package ipamd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/install"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/iptables"
)

// egressSpacing is the minimum time between two checks of pods' egress: shorter than a loss
// must last before it is repaired.
const egressSpacing = 200 * time.Millisecond

// egressKeeper restores what other programs remove from the egress of running pods: the
// chains, jumps, routes and links of egress-cni. It knows the pods by the leases of
// host-local. A DEL removes chain, route and lease in this order and reaches the daemon last,
// so only a loss that lasts is repaired; and a repair for a pod whose lease disappears
// afterwards is undone.
//
// On a node without leases a check is one attempt to open their directory.
type egressKeeper struct {
	*asserter          // reports repairs; used only by this goroutine
	dirs      []string // lease directories; only one exists
	v6        bool     // IP family of the egress

	mu      sync.Mutex // guards changed
	changed egressChanges
	nudge   chan struct{}

	// Only used by its goroutine.
	backend string // that living was learned from
	living  egress.Living
	backoff rules.RepairBackoff
	empty   bool          // the last check found no lease
	ended   []egress.Loss // repairs to undo
	read    time.Time
}

// egressChanges says what has changed since the last check.
type egressChanges struct{ any, chains bool }

func newEgressKeeper(a *asserter) *egressKeeper {
	leases := filepath.Join(install.Defaults(a.ipv6).Egress.DataDir, egress.DefaultNetwork)
	return &egressKeeper{
		asserter: &asserter{
			log: a.log, host: a.host, metrics: a.metrics, feed: a.feed, api: a.api, rules: a.rules, monitor: a.monitor, contested: map[string]bool{},
		},
		v6: !a.ipv6, nudge: make(chan struct{}, 1), empty: true,
		dirs: []string{filepath.Join("/host", leases), leases}, // mounted, or on the host
	}
}

// notice takes notifications. The monitor's goroutines call it.
func (e *egressKeeper) notice(list []hostnet.Notice) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range list {
		switch n.Kind {
		case hostnet.ChangedEgress, hostnet.LostChanges:
			e.changed = egressChanges{true, true}
		case hostnet.ChangedLinks:
			e.changed.any = true
		case hostnet.ChangedPod:
			e.changed.any = e.changed.any || rules.IsEgressAddress(n.Pod)
		}
	}
	if e.changed.any {
		signal(e.nudge)
	}
}

func (e *egressKeeper) take() (c egressChanges) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, e.changed = e.changed, egressChanges{}
	return c
}

// run checks pods' egress until ctx ends.
func (e *egressKeeper) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	full := time.Now()
	var again time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.nudge:
		case <-timer.C:
		}
		now := time.Now()
		c := e.take()
		c.chains = c.chains || !again.IsZero()
		if !now.Before(full) {
			full = now.Add(assertPeriod - assertPeriod/10 + jitter(assertPeriod/5))
			c = egressChanges{true, c.chains || e.chainsDue(now)}
		}
		if c.any || !again.IsZero() && !now.Before(again) {
			again = time.Time{}
			if wait := e.pass(ctx, c.chains); wait > 0 {
				again = time.Now().Add(wait)
			}
			if !pause(ctx, egressSpacing) {
				return
			}
		}
		next := full
		if !again.IsZero() && again.Before(next) {
			next = again
		}
		timer.Reset(max(time.Until(next), time.Millisecond))
	}
}

// chainsDue reports whether to check chains without a notification.
func (e *egressKeeper) chainsDue(now time.Time) bool {
	return e.host.Backend() != string(rules.NFTables) || !e.monitor.SeesFilters() || now.Sub(e.read) >= assertFilters
}

// pass checks once. It returns how long until the next check; 0 if nothing is pending.
func (e *egressKeeper) pass(ctx context.Context, chains bool) (wait time.Duration) {
	p := &repairs{asserter: e.asserter, now: time.Now()}
	wait, err := e.assert(ctx, p, chains)
	if err != nil && ctx.Err() == nil {
		e.fail(err)
		wait = assertPeriod / 6
	}
	return wait
}

func (e *egressKeeper) assert(ctx context.Context, p *repairs, chains bool) (wait time.Duration, _ error) {
	holders, err := e.holders()
	if err != nil || len(holders) == 0 && e.empty && len(e.ended) == 0 {
		return 0, err
	}
	// The plugin wrote the chains to the backend of its time. After a move they do their work
	// there until their pods end, as after a restart.
	if used := e.host.Backend(); e.backend != used {
		e.backend, e.living = used, egress.Living{}
	}
	view, err := e.host.EgressView(e.v6)
	if err != nil {
		return 0, err
	}
	var nat iptables.Table
	if chains {
		e.read = p.now
		if nat, err = e.host.EgressNAT(ctx, e.v6); err != nil {
			return 0, err
		}
		view.NAT = &nat
		// Read them again: a DEL may have ended meanwhile.
		if holders, err = e.holders(); err != nil {
			return 0, err
		}
	}
	lost, ended, wait := e.living.Observe(p.now, egress.DefaultNetwork, holders, view)
	e.empty = len(holders) == 0
	if e.ended = append(e.ended, ended...); len(e.ended) > 0 {
		if err := e.rules.apart(func() error { return e.host.TakeBackEgress(ctx, e.v6, e.ended) }); err != nil {
			return wait, err
		}
		e.ended = nil
	}
	if len(lost) == 0 {
		return wait, nil
	}
	return e.repair(ctx, p, nat, lost, wait)
}

// repair restores everything that is not contested.
func (e *egressKeeper) repair(ctx context.Context, p *repairs, nat iptables.Table, lost []egress.Loss, wait time.Duration) (time.Duration, error) {
	due := slices.DeleteFunc(lost, func(l egress.Loss) bool {
		later := e.backoff.Wait(p.now, thingOf(l))
		if later > 0 && (wait == 0 || later < wait) {
			wait = later
		}
		return later > 0
	})
	if len(due) == 0 {
		return wait, nil
	}
	for _, l := range due { // including partial repairs
		e.living.Made(p.now, l.Holder)
	}
	var done []egress.Loss
	err := e.rules.apart(func() (err error) {
		if e.host.Backend() != e.backend {
			return nil // what was read is of the other one
		}
		done, err = e.host.RepairEgress(ctx, e.v6, nat, due)
		return err
	})
	for _, l := range done {
		e.noted(p, l)
	}
	p.report()
	return egress.LossSettles, err // check that the leases stayed, and what the repair made possible
}

func thingOf(l egress.Loss) string { return l.Kind + " " + l.Holder.Address.String() }

func (e *egressKeeper) noted(p *repairs, l egress.Loss) {
	object := hostnet.EgressObject(l)
	p.done = append(p.done, hostnet.Loss{Object: object, Text: l.String()})
	if rules.Contested(e.backoff.Done(p.now, thingOf(l))) {
		if p.again == nil {
			p.again = map[string]bool{}
		}
		p.again[object] = true
	}
}

// apart runs f while no pass over the node's own rules runs: a pass would take f's writes for
// its own.
func (n *nodeRules) apart(f func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return f()
}

// holders returns the pods that hold leases.
func (e *egressKeeper) holders() ([]egress.Holder, error) {
	for _, dir := range e.dirs {
		list, err := readHolders(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return list, err
		}
	}
	return nil, nil
}

// readHolders reads the leases in a directory.
func readHolders(dir string) (out []egress.Holder, _ error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !strings.ContainsAny(entry.Name(), ".:") || !entry.Type().IsRegular() {
			continue
		}
		text, err := readLease(filepath.Join(dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // released meanwhile
		}
		if err != nil {
			return nil, err
		}
		if t, ok := egress.ParseHolder(entry.Name(), text); ok {
			out = append(out, t)
		}
	}
	return out, nil
}

// maxLease bounds how much of a lease is read: it holds two names.
const maxLease = 1 << 10

func readLease(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLease))
	return string(text), err
}
