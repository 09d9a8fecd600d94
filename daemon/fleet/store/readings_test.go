package store

import (
	"slices"
	"testing"
	"time"
)

// TestReadings_Spread: whatever the rate of the counts, few are kept, in order, and no gap between
// two is longer than a twentieth of the time that they cover, an hour or that of the counts.
func TestReadings_Spread(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	for _, every := range []time.Duration{time.Second, 90 * time.Second, 10 * time.Minute, 5 * time.Hour} {
		for _, span := range []time.Duration{time.Minute, time.Hour, 50 * time.Hour, 90 * 24 * time.Hour} {
			var all Readings
			for at := time.Duration(0); at <= span; at += max(every, span/200_000) {
				all = all.Add(Reading{start.Add(at), int(at)})
				all = all.Add(Reading{start.Add(at - time.Second), -1}) // an older one
			}
			if len(all) == 0 || len(all) > mostKept || slices.ContainsFunc(all, func(r Reading) bool { return r.Free < 0 }) {
				t.Fatalf("every %s for %s: %d", every, span, len(all))
			}
			for i := 1; i < len(all); i++ {
				covered := all[i].At.Sub(all[0].At)
				if len(all) == mostKept { // the first were dropped
					covered = span
				}
				gap, most := all[i].At.Sub(all[i-1].At), max(every, leastApart, min(covered/20, mostApart))+every+span/200_000
				if gap <= 0 || gap > most {
					t.Fatalf("every %s for %s: %s between %d and %d of %d", every, span, gap, i-1, i, len(all))
				}
			}
		}
	}
}

// TestStore_Remember: earlier readings come before those of samples; they belong to the subnet, not
// to a view's nodes.
func TestStore_Remember(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	s := New()
	s.Remember("subnet-a", Readings{{start, 9}, {start.Add(time.Hour), 8}, {start.Add(time.Minute), 1}})
	s.Remember("subnet-a", Readings{{start.Add(30 * time.Minute), 7}, {start.Add(2 * time.Hour), 6}})
	want := Readings{{start, 9}, {start.Add(time.Hour), 8}, {start.Add(2 * time.Hour), 6}}
	if got := s.readings["subnet-a"]; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	other := New()
	other.Take(s)
	if got := other.readings["subnet-a"]; !slices.Equal(got, want) {
		t.Errorf("taken over: %v", got)
	}
}

// TestStore_Precede: what nodes kept comes before the samples, and changes none of them.
func TestStore_Precede(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	s := New()
	s.Remember("subnet-a", Readings{{start, 9}, {start.Add(time.Hour), 8}})
	s.Precede(map[string]Readings{
		"subnet-a": {{start.Add(-2 * time.Hour), 11}, {start.Add(-time.Hour), 10}, {start, 7}, {start.Add(time.Hour), 6}},
		"subnet-b": {{start, 5}},
	})
	want := Readings{{start.Add(-2 * time.Hour), 11}, {start.Add(-time.Hour), 10}, {start, 9}, {start.Add(time.Hour), 8}}
	if a, b := s.readings["subnet-a"], s.readings["subnet-b"]; !slices.Equal(a, want) || len(b) != 1 {
		t.Errorf("%v, %v", a, b)
	}
}
