package main

import (
	"testing"
	"time"

	"cnictl/capacity/limits"
	"cnictl/testenv/cmd/internal/figure"
	"cnictl/testenv/fakeaws"
)

func TestRow(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		row     *row
		verdict string
		missed  bool
	}{
		{"nothing measured", (&row{}).against(figure.Of(100), scaleAtOnce), "", false},
		{"reached", (&row{samples: []float64{5, 6, 90}}).against(figure.Of(100), scaleAtOnce), "ok", false},
		{"below the aim", (&row{samples: []float64{5, 19, 90}}).against(figure.Of(100), scaleAtOnce), "below aim", false},
		{"missed", (&row{samples: []float64{5, 21, 90}}).against(figure.Of(100), scaleAtOnce), "MISSED", true},
		{"one that must be none", (&row{samples: []float64{1}}).none(), "MISSED", true},
		{"without a rule", &row{samples: []float64{1}}, "", false},
		{"only hoped for", (&row{samples: []float64{9}}).possible(figure.Of(10), figure.Of(4)), "below aim", false},
	} {
		if got := row.row.verdict(); got != row.verdict || row.row.misses() != row.missed {
			t.Errorf("%s: %q, missed %t", row.name, got, row.row.misses())
		}
	}
}

// TestBounds checks the bounds that EC2's latencies set and that can be computed.
func TestBounds(t *testing.T) {
	t.Parallel()
	m5, ok := limits.Lookup(instanceType)
	if !ok {
		t.Fatal("the table has no " + instanceType)
	}
	l := latencies(fakeaws.RealisticLatency())
	for _, row := range []struct {
		pods     int
		prefixes bool
		enis     int
		took     time.Duration
		calls    float64
	}{
		{29, false, 0, 400 * time.Millisecond, 4},
		{30, false, 1, 1300 * time.Millisecond, 7},
		{150, false, 5, 1300 * time.Millisecond, 19},
		{150, true, 0, 400 * time.Millisecond, 4},
	} {
		g := growth{pods: row.pods, prefixes: row.prefixes, of: m5}
		if g.newENIs() != row.enis || g.bound(l).least != seconds(row.took) || g.callBound().least != figure.Of(row.calls) {
			t.Errorf("%d pods, prefixes %t: %d ENIs, %v, %v calls", row.pods, row.prefixes, g.newENIs(), g.bound(l).least, g.callBound().least)
		}
	}
	if got := (growth{pods: 40, of: m5}).exhaustedBound(l).least; got != seconds(1600*time.Millisecond) {
		t.Errorf("a refused create: %v", got)
	}
	if got := l.startBound().least; got != figure.Of(80) {
		t.Errorf("start: %v", got)
	}
}
