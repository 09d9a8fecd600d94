package aggregate

import (
	"maps"
	"time"
)

// Cluster is the state of the pods between polls. The zero value is ready to use.
type Cluster struct {
	pods   map[string]*pod
	listed bool // a list has been seen
}

// pod is what is remembered of one pod.
type pod struct {
	// read means that increases are counted from last. That is the pod's last reading, or an
	// empty one for a pod that appeared after the first list: everything such a pod has
	// counted by its first reading is new.
	read bool
	last Reading

	absent int // polls since it was last listed
}

// forgetAfter is how many polls a pod may be missing from the list before its counts are
// forgotten. Pods do not come back, but a list may be incomplete, and counting all the old
// counts as new ones would publish a spurious jump.
const forgetAfter = 20

// Figure is one value of the cluster.
type Figure struct {
	Metric
	Value float64
}

// Poll takes the UIDs of the listed pods, and the readings of those that could be read. It
// returns the figures in the order of the table.
//
// A metric that no pod showed has no figure. Nor does a counter at the first poll, when there
// is nothing to count from. A latency exists only if calls were made.
func (c *Cluster) Poll(listed []string, readings map[string]Reading) []Figure {
	c.note(listed)
	t := newTotals()
	for _, uid := range listed {
		r, ok := readings[uid]
		if !ok {
			continue
		}
		p := c.pods[uid]
		t.addGauges(r)
		if restarted(p.last, r) {
			p.last = Reading{}
		}
		if p.read {
			t.addIncreases(p.last, r)
		}
		p.read, p.last = true, carried(p.last, r)
	}
	return t.figures()
}

// note updates the remembered pods to match a list.
func (c *Cluster) note(listed []string) {
	if c.pods == nil {
		c.pods = make(map[string]*pod, len(listed))
	}
	for uid, p := range c.pods {
		if p.absent++; p.absent > forgetAfter {
			delete(c.pods, uid)
		}
	}
	for _, uid := range listed {
		if c.pods[uid] == nil {
			c.pods[uid] = &pod{read: c.listed}
		}
		c.pods[uid].absent = 0
	}
	c.listed = true
}

// totals adds up one poll. A source is in sums if some pod showed it.
type totals struct {
	sums    map[string]float64
	latency float64 // ms
	called  bool    // some calls were made, so latency is valid
}

func newTotals() *totals { return &totals{sums: make(map[string]float64, len(metrics))} }

func (t *totals) addGauges(r Reading) {
	for _, m := range metrics {
		if v, shown := r.Values[m.Source]; shown && m.Kind == Gauge {
			t.sums[m.Source] += v
		}
	}
}

func (t *totals) addIncreases(last, r Reading) {
	for _, m := range metrics {
		if v, shown := r.Values[m.Source]; shown && m.Kind == Counter {
			t.sums[m.Source] += v - last.Values[m.Source]
		}
	}
	if r.P99 > 0 {
		t.addLatency(r.P99)
		return
	}
	for api, now := range r.Calls {
		before := last.Calls[api]
		if n := now.Count - before.Count; n > 0 {
			t.addLatency((now.Took - before.Took) / n)
		}
	}
}

func (t *totals) addLatency(ms float64) {
	t.latency, t.called = max(t.latency, ms), true
}

// restarted reports whether the counters of a pod restarted since its last reading. One
// counter that fell is enough, since they all live in one process. The CPU time falls even if
// the counters have already overtaken those of the previous process.
func restarted(last, r Reading) bool {
	if r.CPU > 0 && r.CPU < last.CPU || startedBetween(last, r) {
		return true
	}
	for _, m := range metrics {
		if v, shown := r.Values[m.Source]; shown && m.Kind == Counter && v < last.Values[m.Source] {
			return true
		}
	}
	for api, now := range r.Calls {
		if before := last.Calls[api]; now.Count < before.Count || now.Took < before.Took {
			return true
		}
	}
	return false
}

// carried returns r with the counts that it lacks taken from last. An ipamd leaves out what
// it cannot collect: if that counted as zero, the next reading would add the whole count
// again.
func carried(last, r Reading) Reading {
	r.Values, r.Calls = maps.Clone(r.Values), maps.Clone(r.Calls)
	for _, m := range metrics {
		before, had := last.Values[m.Source]
		if _, shown := r.Values[m.Source]; had && !shown && m.Kind == Counter {
			r.Values[m.Source] = before
		}
	}
	for api, before := range last.Calls {
		if _, shown := r.Calls[api]; !shown {
			if r.Calls == nil {
				r.Calls = make(map[string]Calls)
			}
			r.Calls[api] = before
		}
	}
	if r.CPU == 0 {
		r.CPU = last.CPU
	}
	if r.Started.IsZero() {
		r.Started = last.Started
	}
	return r
}

// clockNoise is how far the start time of a process may appear to move: the kernel derives it
// from the clock, in whole seconds.
const clockNoise = 2 * time.Second

// startedBetween reports whether the process started after the last reading. It catches a
// process that crashes repeatedly, whose counters need not fall. Setting a node's clock also
// moves the start of the old process, but hardly beyond the last reading.
func startedBetween(last, r Reading) bool {
	return !last.Started.IsZero() && r.Started.After(last.Started.Add(clockNoise)) && r.Started.After(last.At)
}

func (t *totals) figures() []Figure {
	out := make([]Figure, 0, len(metrics))
	for _, m := range metrics {
		if m.Kind == Latency {
			if t.called {
				out = append(out, Figure{m, t.latency})
			}
			continue
		}
		if v, shown := t.sums[m.Source]; shown {
			out = append(out, Figure{m, v})
		}
	}
	return out
}
