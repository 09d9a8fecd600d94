package live

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogram_WithinAFifth(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("nothing was counted")
	}
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(rng.ExpFloat64() * float64(150*time.Millisecond))
		all = append(all, d)
		h.add(d)
	}
	slices.Sort(all)
	for _, q := range []float64{0.5, 0.9, 0.99} {
		want := all[int(q*float64(len(all)))-1]
		if got := h.quantile(q); got < want || float64(got) > 1.2*float64(want) {
			t.Errorf("p%v %s, want %s", 100*q, got, want)
		}
	}
	h.add(-time.Second)
	h.add(100 * time.Hour)
	for range 20_000 {
		h.add(time.Second)
	}
	if got := h.quantile(0.5); got < time.Second || got > 1200*time.Millisecond {
		t.Errorf("p50 %s: what was is not forgotten", got)
	}
}

func TestMeter(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	var m meter
	for _, row := range []struct {
		at, cpu time.Duration
		samples uint64
		want    time.Duration // 0: no measurement
	}{
		{0, time.Second, 10, 0},
		{500 * time.Millisecond, 2 * time.Second, 1000, 0},
		{time.Second, 2 * time.Second, 1010, time.Millisecond},
		{2 * time.Second, 3 * time.Second, 1029, 0}, // too few
		{3 * time.Second, 3 * time.Second, 2000, 0}, // the system reports no CPU time
		{4 * time.Second, 4 * time.Second, 2020, 50 * time.Millisecond},
	} {
		if one, ok := m.read(start.Add(row.at), row.cpu, row.samples); one != row.want || ok != (row.want > 0) {
			t.Errorf("at %s: %s, %v", row.at, one, ok)
		}
	}
}
