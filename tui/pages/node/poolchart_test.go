package node

import (
	"math"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
)

// TestPoolChart_ByTime: a cell of the chart represents a time, not a sample. Time without a reading
// is a gap, and a target has its value of each time.
func TestPoolChart_ByTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	point := func(back time.Duration, used, warm int) store.Point {
		return store.Point{Unix: uint32(now.Add(-back).Unix()), Assigned: int32(used), Cooling: 1, Free: 2, WarmIP: int16(warm), MinimumIP: -1}
	}
	n := &store.Node{History: store.History{
		point(170*time.Second, 1, 5), point(160*time.Second, 2, 5), point(150*time.Second, 2, 5),
		point(140*time.Second, -1, -1), // not read
		point(40*time.Second, 7, 3), point(30*time.Second, 8, 3), point(0, 9, 3),
	}}
	n.Summary = &introspect.Summary{Targets: introspect.Targets{WarmENI: new(1)}}
	c := poolChart(n, now, 18)
	if c.Span != "last 3m" {
		t.Errorf("shows %q", c.Span)
	}
	nan := math.NaN()
	same := func(what string, got, want []float64) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	same("used", c.Areas[0].Values, []float64{1, 2, 2, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, 7, 8, 8, 8, 9})
	if len(c.Levels) != 1 || c.Levels[0].Name != "WARM_IP" || c.Levels[0].Value != 13 {
		t.Fatalf("levels %+v", c.Levels)
	}
	same("WARM_IP", c.Levels[0].Values, []float64{7, 8, 8, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, 11, 12, 12, 12, 13})
	for _, x := range []struct {
		age  time.Duration
		want time.Duration
	}{{20 * time.Second, 3 * time.Minute}, {4 * time.Minute, 5 * time.Minute}, {time.Hour, 15 * time.Minute}} {
		if got := spanOf(store.History{point(x.age, 1, 1)}, now); got != x.want {
			t.Errorf("of %v: %v, want %v", x.age, got, x.want)
		}
	}
}
