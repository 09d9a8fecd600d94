package collect

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/daemon/fleet/kube"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/testenv/kube/fleetsim"
)

// stoppedClock is the clock of a simulated cluster that stands still while nodes are read, however
// long that takes.
type stoppedClock struct {
	began  time.Time
	passed atomic.Int64
}

func (c *stoppedClock) now() time.Time { return c.began.Add(time.Duration(c.passed.Load())) }

// collectAll reads a cluster twice, the default interval apart on this clock.
func (c *stoppedClock) collectAll(tb testing.TB, from *kube.Cluster) *evidence.Evidence {
	tb.Helper()
	var first sync.Once
	return collectAll(tb, Options{Cluster: from, Interval: time.Millisecond, Now: c.now, Progress: func(done, total int, what string) {
		if what == "nodes in full" && done == total {
			first.Do(func() { c.passed.Add(int64(DefaultInterval)) })
		}
	}})
}

// TestCollect_Healthy: a healthy cluster has no finding above info, whatever runs on
// its nodes.
func TestCollect_Healthy(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]fleetsim.Options{
		"both daemons": {Nodes: 150, Seed: 7, UpstreamShare: 0.3},
		"IPv6":         {Nodes: 10, Seed: 3, IPv6: true, UpstreamShare: 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := stoppedClock{began: time.Now()}
			o.Now = clock.now
			ev := clock.collectAll(t, connectAt(t, fleetsim.New(t, o), o.Now))
			for _, f := range causes.Diagnose(ev, causes.Options{}).Findings {
				if f.Severity != catalogue.Info.String() {
					t.Errorf("%s on %v: %s\n%+v", f.Code, f.Nodes, f.Summary, f.Evidence)
				}
			}
		})
	}
}

// TestCollect_AllSound: a cluster whose nodes all look sound is diagnosed without waiting for a
// second reading, whose absence leaves nothing undecided.
func TestCollect_AllSound(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 5, Seed: 7, Sound: true, Churn: -1})
	ev := collectAll(t, Options{Cluster: connect(t, sim), Interval: time.Hour})
	roundTrip(t, ev)
	r := causes.Diagnose(ev, causes.Options{Wants: func(code string) bool {
		return code != "boot/rbac" // the simulation has no roles
	}})
	if len(r.Findings)+len(r.Undecided) > 0 {
		t.Errorf("undecided: %v, found:\n%+v", r.Undecided, r.Findings)
	}
}

// soakRuns are the examinations of TestCollect_Soak; 100 at night.
var soakRuns = 5

// TestCollect_Soak: over half an hour of a healthy cluster, no examination has a finding above info.
func TestCollect_Soak(t *testing.T) {
	t.Parallel()
	clock := stoppedClock{began: time.Now()}
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 40, Seed: 11, UpstreamShare: 0.4, Sound: true, NodeChurn: time.Minute, Now: clock.now})
	c := connectAt(t, sim, clock.now)
	for run := range soakRuns {
		ev := clock.collectAll(t, c)
		for _, f := range causes.Diagnose(ev, causes.Options{}).Findings {
			if f.Severity != catalogue.Info.String() {
				t.Errorf("run %d: %s on %v: %s\n%+v", run, f.Code, f.Nodes, f.Summary, f.Evidence)
			}
		}
		clock.passed.Add(int64(30*time.Minute) / int64(soakRuns))
	}
}
