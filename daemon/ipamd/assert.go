package ipamd

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/cluster"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/keeper"
)

const (
	// assertPeriod is how often the host is checked without a notification: legacy iptables
	// sends none.
	assertPeriod = 30 * time.Second
	// assertFilters is how often packet filters are checked without a notification where the
	// kernel sends notifications of them: each check runs programs.
	assertFilters = 5 * time.Minute
	// assertRounds bounds the rounds of a pass: one repair can make another one necessary.
	assertRounds = 4
	// addGrace is longer than any ADD takes: after it no plugin is still working on a pod or
	// about to use a VLAN device.
	addGrace = 2 * time.Minute
	// assertENI bounds the repair of an ENI, whose link exists.
	assertENI = 5 * time.Second
)

// asserter restores host network state that other programs remove: of running pods, of ENIs
// and of the node. Its goroutine reads the kernel first and then asks the owner. A DEL frees
// the address before it touches the kernel, so it is never worked against. Neither is an ADD:
// until it must have ended, only state that was once complete is restored.
type asserter struct {
	log     *slog.Logger
	host    *hostnet.Host
	owner   *owner
	metrics *metrics.Metrics
	feed    *introspectserver.Feed
	api     *kubernetes // nil if there is no API server
	rules   *nodeRules
	monitor *hostnet.Monitor
	egress  *egressKeeper
	ipv6    bool
	mtu     int
	// branchPods: pods have branch ENIs; the API server knows them.
	branchPods bool

	mu        sync.Mutex // guards the fields up to wake
	noticed   noticed
	node      pace // limits the checks of the node
	sandboxes map[podName]branchSandbox
	wake      chan struct{}

	// Only used by the goroutine that runs passes.
	restored  map[netip.Addr]string // address owners at the start
	atStart   map[string]bool       // hashes of the pods' links at the start; nil before the first pass
	baseline  rules.Baseline
	claims    cluster.Claims // of branch pods, as of the last pass
	backoff   rules.RepairBackoff
	unneeded  map[int]time.Time // VLAN devices without a pod, and since when
	filters   time.Time         // last check of packet filters
	failure   string            // the last one logged
	contested map[string]bool   // objects whose removal by another program was logged
}

// newAsserter records which pods were running before this process started.
func (d *daemon) newAsserter() *asserter {
	a := &asserter{
		log: d.log, host: d.host, owner: d.owner, metrics: d.metrics, feed: d.recorder.feed, api: d.api, rules: d.rules,
		monitor: hostnet.NewMonitor(d.node.identity.PrimaryMAC), ipv6: d.node.config.IPv6, mtu: d.node.config.ENIMTU,
		branchPods: d.branchPods(),
		sandboxes:  map[podName]branchSandbox{}, wake: make(chan struct{}, 1), restored: map[netip.Addr]string{}, unneeded: map[int]time.Time{}, contested: map[string]bool{},
	}
	for _, p := range d.owner.keeper.Assignments() { // the owner does not run yet
		a.restored[p.Address] = ownerOf(p.Sandbox)
	}
	a.egress = newEgressKeeper(a)
	return a
}

// watch follows the kernel's notifications. Without them, only the periodic checks remain.
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
	full := time.Now() // the first check runs at once: others may have changed the host before the start
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

// pass checks once. It returns how long until something that was left alone for now is to be
// restored; 0 if nothing was.
func (a *asserter) pass(ctx context.Context, l chore) (wait time.Duration) {
	if !l.full && !l.links && !l.node && !a.concerned(l.gone) {
		return 0
	}
	p := &repairs{asserter: a, now: time.Now()}
	if l.full {
		p.followBackend(ctx)
	}
	if err := p.assert(ctx, l.node || l.full && a.filtersDue(p.now)); err != nil && ctx.Err() == nil {
		a.fail(err)
	}
	p.report()
	a.log.Debug("host network state checked", slog.Int(logline.KeyCount, len(p.done)), slog.Duration(logline.KeyDuration, time.Since(p.now)))
	return p.wait
}

// filtersDue reports whether to check packet filters without a notification.
func (a *asserter) filtersDue(now time.Time) bool {
	return a.host.Backend() != string(rules.NFTables) || !a.monitor.SeesFilters() || now.Sub(a.filters) >= assertFilters
}

// concerned reports whether notifications about single addresses concern running pods rather
// than the work of a DEL.
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

// fail logs an error unless it is the last one logged.
func (a *asserter) fail(err error) {
	if text := err.Error(); a.failure != text {
		a.failure = text
		a.log.Warn("host network state not restored, will be retried", slog.Any(logline.KeyError, err))
	}
}
