package inventory

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// fewestOf tries every set of nodes.
func fewestOf(holders [][]int, nodes, want int) int {
	best := -1
	for set := range 1 << nodes {
		if n := bits.OnesCount(uint(set)); (best < 0 || n < best) && freedBy(holders, set) >= want {
			best = n
		}
	}
	return best
}

func freedBy(holders [][]int, set int) (n int) {
	for _, of := range holders {
		if !slices.ContainsFunc(of, func(node int) bool { return set&(1<<node) == 0 }) {
			n++
		}
	}
	return n
}

// drawn returns the holders of blocks: many nodes with single addresses, some with prefixes.
func drawn(r *rand.Rand, blocks, nodes, most int, prefixes float64) [][]int {
	out := make([][]int, blocks)
	for i := range out {
		count := 1 + r.IntN(most)
		if r.Float64() < prefixes {
			count = 1
		}
		for range count {
			if n := r.IntN(nodes); !slices.Contains(out[i], n) {
				out[i] = append(out[i], n)
			}
		}
	}
	return out
}

// TestFewest: on small subnets, no set of nodes is smaller, by trying all of them.
func TestFewest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 2))
	for range 3000 {
		nodes, blocks := 1+r.IntN(10), 1+r.IntN(24)
		holders := drawn(r, blocks, nodes, 1+r.IntN(5), r.Float64())
		want := 1 + r.IntN(blocks)
		set, least := Fewest(t.Context(), holders, want)
		best := fewestOf(holders, nodes, want)
		if len(set) != best || least != best {
			t.Fatalf("%v: %d blocks by %v (at least %d), the smallest set has %d", holders, want, set, least, best)
		}
		chosen := 0
		for _, n := range set {
			chosen |= 1 << n
		}
		if freedBy(holders, chosen) < want {
			t.Fatalf("%v: %v does not free %d", holders, set, want)
		}
	}
}

// TestFewest_OutOfTime: without time, the set is still one that suffices, and the bound is true.
func TestFewest_OutOfTime(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 3))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 500 {
		holders := drawn(r, 60, 12, 6, .2)
		set, least := Fewest(ended, holders, 8)
		chosen := 0
		for _, n := range set {
			chosen |= 1 << n
		}
		if best := fewestOf(holders, 12, 8); freedBy(holders, chosen) < 8 || least > best || best > len(set) {
			t.Fatalf("%v: %v, at least %d; the smallest set has %d", holders, set, least, best)
		}
	}
}

func TestFewest_Impossible(t *testing.T) {
	t.Parallel()
	holders := [][]int{{0, 1}, {1}}
	if set, least := Fewest(t.Context(), holders, 3); set != nil || least != 0 {
		t.Errorf("%v, %d", set, least)
	}
	if set, least := Fewest(t.Context(), holders, 2); !slices.Equal(set, []int{0, 1}) || least != 2 {
		t.Errorf("%v, %d", set, least)
	}
}
