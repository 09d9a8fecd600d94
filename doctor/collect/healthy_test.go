package collect

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/doctor/catalogue"
	"cnictl/doctor/causes"
	"cnictl/testenv/fleetsim"
)

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
			ev := collectAll(t, Options{Cluster: connect(t, fleetsim.New(t, o)), Interval: time.Second})
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

// TestCollect_Soak: over half an hour of a healthy cluster, 200 examinations have no finding above
// info. The cluster's clock stops while nodes are read.
func TestCollect_Soak(t *testing.T) {
	t.Parallel()
	const step = 9 * time.Second
	runs := 200
	if testing.Short() {
		runs = 20 // enough to find a race
	}
	var passed atomic.Int64
	began := time.Now()
	now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 40, Seed: 11, UpstreamShare: 0.4, Sound: true, NodeChurn: time.Minute, Now: now})
	c := connectAt(t, sim, now)
	for run := range runs {
		var later sync.Once
		ev := collectAll(t, Options{Cluster: c, Interval: time.Millisecond, Now: now, Progress: func(done, total int, what string) {
			if what == "nodes in full" && done == total {
				later.Do(func() { passed.Add(int64(DefaultInterval)) })
			}
		}})
		for _, f := range causes.Diagnose(ev, causes.Options{}).Findings {
			if f.Severity != catalogue.Info.String() {
				t.Errorf("run %d: %s on %v: %s\n%+v", run, f.Code, f.Nodes, f.Summary, f.Evidence)
			}
		}
		passed.Add(int64(step))
	}
}
