package whatif

import (
	"reflect"
	"testing"
	"time"
)

// TestSearch_EqualsExhaustive plays a grid of 6 × 6 × 4 to the end, and finds the same.
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
				if r := play(t, with(nodes, x), load, Ours); r.Failed <= failed {
					want = insert(want, Point{i, x, r})
				}
			}
			got, err := Search(nodes, load, Ours, grid, failed, func(int) bool { return true })
			if err != nil || len(got) == 0 || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %d points, want %d, %v", name, len(got), len(want), err)
			}
		}
	}
}

// TestCandidates: those left out of the grid are treated as one that is in it.
func TestCandidates(t *testing.T) {
	t.Parallel()
	s := m5large()
	load := Load{Steps: Replacements(3, time.Hour, 9), For: time.Hour, Seed: 9, Free: -1}
	// 5 of WARM_ENI_TARGET, and with each WARM_IP_TARGET w of 3 the minima 0 and w+1 to 7.
	if n := len(Candidates(s, Bounds{WarmIP: 3, MinimumIP: 7, WarmENI: 4})); n != 5+7+6+5 {
		t.Errorf("%d candidates", n)
	}
	prefixes := s
	prefixes.PrefixDelegation = true
	if c := Candidates(prefixes, Bounds{WarmPrefix: 3}); len(c) != 3 || c[0].WarmPrefix != 1 {
		t.Errorf("with prefixes: %+v", c) // 0 is refused
	}
	for _, alike := range [][2][2]int{{{0, 9}, {1, 9}}, {{4, 4}, {4, 0}}, {{6, 3}, {6, 0}}} {
		a, b := m5large(alike[0][0], alike[0][1]), m5large(alike[1][0], alike[1][1])
		if x, y := play(t, []Node{{a, 8}}, load, Ours), play(t, []Node{{b, 8}}, load, Ours); x != y {
			t.Errorf("%v: %+v\n%+v", alike, x, y)
		}
	}
}
