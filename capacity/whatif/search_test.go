package whatif

import (
	"reflect"
	"testing"
	"time"
)

// found runs a search to its end, one trial after another.
func found(tb testing.TB, nodes []Node, load Load, candidates []Settings, failed int, bound CallBound) *Search {
	tb.Helper()
	s := NewSearch(played(tb, nodes, load, Ours), nodes, candidates, failed, bound)
	for trial, ok := s.Next(); ok; trial, ok = s.Next() {
		if played, err := trial.Play(func() bool { return true }); !played || err != nil {
			tb.Fatal(err)
		}
		s.Add(trial)
	}
	return s
}

// TestSearch_EqualsExhaustive: simulating all of a grid of 6 × 6 × 4 finds the same as the search.
func TestSearch_EqualsExhaustive(t *testing.T) {
	t.Parallel()
	s := m5large()
	var grid []Settings
	for w := range 6 {
		for m := range 6 {
			for e := range 4 {
				x := s
				x.WarmIP, x.MinimumIP, x.WarmENI = w, 3*m, e
				grid = append(grid, x)
			}
		}
	}
	nodes := []Node{{s, 8}, {s, 12}}
	loads := map[string]Load{
		"replaced": {Steps: Replacements(2, 2*time.Hour, 4), For: 2 * time.Hour, Seed: 4, Free: -1},
		"burst":    {Steps: Burst(0, 10, 5*time.Second), For: 5 * time.Minute, Free: -1},
	}
	for name, load := range loads {
		for _, failed := range []int{0, 3} {
			var want []Point
			for i, x := range grid {
				if p := played(t, With(nodes, x), load, Ours).point(i, x); p.Result.Failed <= failed {
					want = insert(want, p)
				}
			}
			if got := found(t, nodes, load, grid, failed, nil).Front(); len(got) == 0 || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %d points, want %d", name, len(got), len(want))
			}
		}
	}
}

// TestCandidates: settings omitted from the grid behave like ones in it.
func TestCandidates(t *testing.T) {
	t.Parallel()
	s := m5large()
	load := Load{Steps: Replacements(3, time.Hour, 9), For: time.Hour, Seed: 9, Free: -1}
	// 5 values of WARM_ENI_TARGET, and with each of 3 WARM_IP_TARGETs w, the minima 0 and w+1 to 7.
	if n := len(Candidates([]Node{{Settings: s}}, Bounds{WarmIP: 3, MinimumIP: 7, WarmENI: 4})); n != 5+7+6+5 {
		t.Errorf("%d candidates", n)
	}
	if c := Candidates([]Node{{Settings: m5large(2, 5)}}, Bounds{WarmIP: 3, MinimumIP: 7, WarmENI: 4}); c[0].WarmIP != 2 || c[0].MinimumIP != 5 || len(c) != 5+7+6+5 {
		t.Errorf("%d candidates, the first %+v", len(c), c[0])
	}
	prefixes := s
	prefixes.PrefixDelegation = true
	if c := Candidates([]Node{{Settings: prefixes}}, Bounds{WarmPrefix: 3}); len(c) != 3 || c[0].WarmPrefix != 1 {
		t.Errorf("with prefixes: %+v", c) // 0 is refused
	}
	if c := Candidates([]Node{{Settings: s}, {Settings: prefixes}}, Bounds{WarmENI: 4, WarmPrefix: 3}); len(c) != 5*3 {
		t.Errorf("with nodes of both modes: %+v", c)
	}
	for _, alike := range [][2][2]int{{{0, 9}, {1, 9}}, {{4, 4}, {4, 0}}, {{6, 3}, {6, 0}}} {
		a, b := m5large(alike[0][0], alike[0][1]), m5large(alike[1][0], alike[1][1])
		if x, y := play(t, []Node{{a, 8}}, load, Ours), play(t, []Node{{b, 8}}, load, Ours); x != y {
			t.Errorf("%v: %+v\n%+v", alike, x, y)
		}
	}
}
