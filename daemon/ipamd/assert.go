package ipamd

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/keeper"
)

const (
	// assertPeriod is how often the host is checked without a notice: legacy iptables
	// sends none.
	assertPeriod = 30 * time.Second
	// assertFilters is how often packet filters are checked without a notice where the
	// kernel sends notices of them: each check runs programs.
	assertFilters = 5 * time.Minute
	// assertRounds bounds the looks of a pass: what a repair makes can be needed by
	// another one.
	assertRounds = 4
	// addGrace is longer than any ADD takes: after it no plugin is at work on a pod, nor
	// about to use a VLAN device.
	addGrace = 2 * time.Minute
	// assertENI bounds the repair of an ENI, whose link is there.
	assertENI = 5 * time.Second
)

// asserter brings back what other programs take from the host's network: of living pods,
// of ENIs and of the node. Its goroutine reads the kernel first and asks the owner then,
// so that a DEL, which frees the address before it touches the kernel, is never worked
// against; nor is an ADD: until it must have ended, only what was whole once is brought back.
type asserter struct {
	log     *slog.Logger
	host    *hostnet.Host
	owner   *owner
	metrics *metrics.Metrics
	feed    *introspectserver.Feed
	api     *kubernetes // nil: there is no API server
	rules   *nodeRules
	monitor *hostnet.Monitor
	egress  *egressKeeper
	ipv6    bool
	mtu     int
	// branchPods: pods have branch ENIs, which the API server knows.
	branchPods bool

	mu        sync.Mutex // guards what follows up to wake
	noticed   noticed
	node      pace // of checks of the node
	sandboxes map[podName]branchSandbox
	wake      chan struct{}

	// Of the pass's goroutine.
	restored  map[netip.Addr]string // owners, as of the start
	atStart   map[string]bool       // hashes of the pods' links at the start; nil before the first pass
	baseline  rules.Baseline
	contests  rules.Contests
	unneeded  map[int]time.Time // VLAN devices of no pod, since when
	filters   time.Time         // last check of packet filters
	failure   string            // the last one that was logged
	contested map[string]bool   // objects whose contest with another program was logged
}

// newAsserter remembers whose pods lived before this process began.
func (d *daemon) newAsserter() *asserter {
	a := &asserter{
		log: d.log, host: d.host, owner: d.owner, metrics: d.metrics, feed: d.recorder.feed, api: d.api, rules: d.rules,
		monitor: hostnet.NewMonitor(d.node.identity.PrimaryMAC), ipv6: d.node.config.IPv6, mtu: d.node.config.ENIMTU,
		branchPods: d.node.config.PodENI && d.api != nil,
		sandboxes:  map[podName]branchSandbox{}, wake: make(chan struct{}, 1), restored: map[netip.Addr]string{}, unneeded: map[int]time.Time{}, contested: map[string]bool{},
	}
	for _, p := range d.owner.keeper.Assignments() { // the owner does not run yet
		a.restored[p.Address] = ownerOf(p.Sandbox)
	}
	a.egress = newEgressKeeper(a)
	return a
}

// watch follows the kernel's notices. Without it the periodic checks remain.
func (a *asserter) watch(ctx context.Context) {
	for {
		err := a.monitor.Run(ctx, a.notice)
		if ctx.Err() != nil {
			return
		}
		a.log.Warn("no notifications of host network changes, checking every 30 s instead", slog.Any(logline.KeyError, err))
		if !pause(ctx, assertPeriod) {
			return
		}
		a.notice(hostnet.Notice{Kind: hostnet.LostChanges})
	}
}

// run checks the host until ctx ends.
func (a *asserter) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	full := time.Now() // the first one at once: others may have changed the host before the start
	var again time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		case <-timer.C:
		}
		now := time.Now()
		l, due := a.take(now)
		if !now.Before(full) {
			full = now.Add(assertPeriod - assertPeriod/10 + jitter(assertPeriod/5))
			l.full = true
		}
		if !again.IsZero() && !now.Before(again) {
			l.full, l.node = true, true
		}
		if l.any() {
			again = time.Time{}
			if wait := a.pass(ctx, l); wait > 0 {
				again = time.Now().Add(wait)
			}
		}
		next := full
		for _, at := range []time.Time{due, again} {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		timer.Reset(max(time.Until(next), time.Millisecond))
	}
}

// pass looks once. wait is how long until something is to be brought back that was left
// alone for now; 0: nothing was.
func (a *asserter) pass(ctx context.Context, l chore) (wait time.Duration) {
	if !l.full && !l.links && !l.node && !a.concerned(l.gone) {
		return 0
	}
	p := &repairs{asserter: a, now: time.Now()}
	if err := p.assert(ctx, l.node || l.full && a.filtersDue(p.now)); err != nil && ctx.Err() == nil {
		a.fail(err)
	}
	p.report()
	a.log.Debug("host network state checked", slog.Int(logline.KeyCount, len(p.done)), slog.Duration(logline.KeyDuration, time.Since(p.now)))
	return p.wait
}

// filtersDue reports whether packet filters are checked without a notice.
func (a *asserter) filtersDue(now time.Time) bool {
	return a.host.Backend() != string(rules.NFTables) || !a.monitor.SeesFilters() || now.Sub(a.filters) >= assertFilters
}

// concerned reports whether notices about single addresses are about pods that live, and
// not the doings of a DEL.
func (a *asserter) concerned(gone map[netip.Addr]bool) bool {
	yes, ok := ask(a.owner, func(k *keeper.Keeper, _ time.Time) bool {
		for addr := range gone {
			if k.Holds(addr) {
				return true
			}
		}
		return false
	})
	return ok && (yes || a.branchPods)
}

// fail logs what is not logged yet.
func (a *asserter) fail(err error) {
	if text := err.Error(); a.failure != text {
		a.failure = text
		a.log.Warn("host network state not restored, will be retried", slog.Any(logline.KeyError, err))
	}
}
