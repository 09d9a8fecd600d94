package live

import (
	"slices"
	"time"

	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// View returns the newest snapshot of the fleet.
func (l *Live) View() *store.View { return l.opts.Store.View() }

// Changed fires when View has something new, at most five times a second.
func (l *Live) Changed() <-chan struct{} { return l.changed }

// Now returns the current time.
func (l *Live) Now() time.Time { return l.opts.Now() }

// Title names the fleet.
func (l *Live) Title() string { return l.opts.Title }

// Focus sets what is on the screen, so that it is read first.
func (l *Live) Focus(f watch.Focus) {
	f.Visible = slices.Clone(f.Visible)
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Open == l.focus.Open && f.Away == l.focus.Away && f.Maps == l.focus.Maps && slices.Equal(f.Visible, l.focus.Visible) {
		return
	}
	l.focus = f
	l.closeNamed(l.plan.Focus(f.Open, f.Visible, f.Away))
	l.poke()
}

// Refresh reads the nodes on the screen now, even while sampling is paused.
func (l *Live) Refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plan.Refresh()
	if !l.outage.since.IsZero() {
		l.outage.retry = l.opts.Now()
	}
	l.poke()
}

// Pace sets the time between two samples of a node on the screen, and whether to sample at
// all.
func (l *Live) Pace(p watch.Pace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused = p.Paused
	l.closeNamed(l.plan.Pace(p.Interval, p.Paused))
	l.poke()
}

// Stats returns statistics of the sampling.
func (l *Live) Stats() watch.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := watch.Stats{
		Interval: l.plan.Interval(), Background: l.plan.Background(), Widened: l.plan.Widened(), SweepTook: l.plan.Sweep(),
		InFlight: l.plan.InFlight(), Tunnels: l.plan.Kept() + l.followers, Samples: l.samples, Failed: l.failed, Dropped: l.dropped,
		LatencyP50: l.latency.quantile(0.5), LatencyP99: l.latency.quantile(0.99),
		Problem: l.problem, ProblemAt: l.problemAt, Swept: l.listed && l.plan.Swept(),
	}
	if o := l.outage; !o.since.IsZero() && len(l.members) > 0 {
		s.Problem, s.ProblemAt, s.RetryAt = o.why, o.since, o.retry
	}
	if l.opts.Kubernetes.Requests != nil {
		s.APIRequests = l.opts.Kubernetes.Requests()
	}
	return s
}
