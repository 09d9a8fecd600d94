package store

import (
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// Indexes into counters.n.
const (
	countADDs = iota
	countFailed
	countDELs
	countEC2
	countEC2Errors
	allCounts
)

// counters are the counts of a daemon since it started.
type counters struct {
	started time.Time
	at      time.Time
	n       [allCounts]int // -1 = unknown
}

// countersOf reads the counters; nil if the daemon reports none or the sample has no time.
func countersOf(n document.NodeIPAM) *counters {
	s := n.Summary
	if s == nil || n.SampledAt == nil || s.StartedAt == nil || s.ADDs == nil && s.DELs == nil && s.EC2Calls == nil {
		return nil
	}
	c := &counters{started: *s.StartedAt, at: *n.SampledAt}
	for i, v := range countsOf(s) {
		c.n[i] = -1
		if v != nil {
			c.n[i] = *v
		}
	}
	return c
}

// countsOf returns what a daemon counted since it started; nil where it does not say.
func countsOf(s *introspect.Summary) (n [allCounts]*int) {
	if s.ADDs != nil {
		n[countADDs], n[countFailed] = &s.ADDs.Total, s.ADDs.Failed
	}
	if s.DELs != nil {
		n[countDELs] = &s.DELs.Total
	}
	if s.EC2Calls != nil {
		calls, failed := 0, 0
		for _, c := range s.EC2Calls {
			calls, failed = calls+c.Calls, failed+c.Errors
		}
		n[countEC2], n[countEC2Errors] = &calls, &failed
	}
	return n
}

// since returns the rates since an earlier moment of the same run; nil if that was another
// run, if a counter went backwards, or if no time has passed. A counter missing at either
// moment has no rate.
func (c *counters) since(before *counters) *Rates {
	if c == nil || before == nil || !c.started.Equal(before.started) || !c.at.After(before.at) {
		return nil
	}
	over := c.at.Sub(before.at)
	var rates [allCounts]*float64
	for i, n := range c.n {
		if n < 0 || before.n[i] < 0 {
			continue
		}
		if n < before.n[i] {
			return nil
		}
		rates[i] = new(float64(n-before.n[i]) / over.Minutes())
	}
	return &Rates{
		Over: over, ADDs: rates[countADDs], Failed: rates[countFailed], DELs: rates[countDELs],
		EC2: rates[countEC2], EC2Error: rates[countEC2Errors],
	}
}

// Rates cover the last rateWindow, so that bursts do not make them flicker. Counts are kept
// every countsApart, plus the newest.
const (
	rateWindow  = time.Minute
	countsApart = 10 * time.Second
)

// rates returns the rates up to the newest counts, and the counts to keep for next time,
// oldest first. It does not modify kept.
func (c *counters) rates(kept []counters, before *Rates) (*Rates, []counters) {
	if c == nil {
		return nil, nil
	}
	last := len(kept) - 1
	if last < 0 {
		return nil, []counters{*c}
	}
	if c.started.Equal(kept[last].started) && c.at.Equal(kept[last].at) {
		return before, kept // the node's clock, in whole seconds, has not advanced
	}
	if c.since(&kept[last]) == nil {
		return nil, []counters{*c}
	}
	from, to := 0, last+1
	for from < last && c.at.Sub(kept[from+1].at) >= rateWindow {
		from++
	}
	if last > from && kept[last].at.Sub(kept[last-1].at) < countsApart {
		to = last
	}
	return c.since(&kept[from]), append(slices.Clone(kept[from:to]), *c)
}
