package introspectserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRing_Since(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		appended, after uint64
		limit           int
		want            string // items, first, missed
	}{
		{0, 0, 9, "[] 1 0"},
		{0, 7, 9, "[] 8 0"},
		{2, 0, 9, "[1 2] 1 0"},
		{2, 1, 9, "[2] 2 0"},
		{2, 2, 9, "[] 3 0"},
		{3, 0, 9, "[1 2 3] 1 0"},
		{3, 0, 2, "[1 2] 1 0"},
		{3, 0, 0, "[] 1 0"},
		{3, 0, -1, "[] 1 0"},
		{4, 0, 9, "[2 3 4] 2 1"},
		{4, 1, 9, "[2 3 4] 2 0"},
		{7, 2, 1, "[5] 5 2"},
		{7, 9, 1, "[] 10 0"},
		{7, ^uint64(0), 1, "[] 0 0"},
	} {
		r := newRing[uint64](3)
		for i := range row.appended {
			if n := r.Append(i + 1); n != i+1 {
				t.Fatalf("item %d got number %d", i+1, n)
			}
		}
		items, first, missed := r.Since(row.after, row.limit)
		if got := fmt.Sprint(items, first, missed); got != row.want {
			t.Errorf("%+v: got %s", row, got)
		}
	}
}

// reader is a client that requests what comes after the last item it saw.
type reader struct {
	after uint64
	got   []uint64 // numbers; 0 for a missed one
}

func (c *reader) read(t *testing.T, r *ring[uint64], limit int) {
	items, first, missed := r.Since(c.after, limit)
	c.got = append(c.got, make([]uint64, missed)...)
	c.after += missed
	for i, item := range items {
		if item != first+uint64(i) {
			t.Fatalf("item %d is said to be %d", item, first+uint64(i))
		}
		c.got = append(c.got, item)
		c.after = item
	}
}

// TestRing_NothingLostNothingDoubled: for any order of appends and reads, each reader gets
// what happened, except for the items reported as missed.
func TestRing_NothingLostNothingDoubled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := newRing[uint64](1 + rnd.IntN(12))
		readers := make([]reader, 1+rnd.IntN(6))
		happened := uint64(0)
		for range 400 {
			if rnd.IntN(3) > 0 {
				happened++
				r.Append(happened)
				continue
			}
			readers[rnd.IntN(len(readers))].read(t, r, 1+rnd.IntN(8))
		}
		for i := range readers {
			c := &readers[i]
			for c.after < happened {
				c.read(t, r, 5)
			}
			want := make([]uint64, happened)
			for n := range want {
				if c.got = slices.Clip(c.got); n < len(c.got) && c.got[n] != 0 {
					want[n] = uint64(n) + 1
				}
			}
			if !slices.Equal(c.got, want) {
				t.Fatalf("seed %d reader %d: got %v of %d", seed, i, c.got, happened)
			}
		}
	}
}

func TestRing_AppendDoesNotAllocate(t *testing.T) {
	r := newRing[[4]string](500)
	if n := testing.AllocsPerRun(2000, func() { r.Append([4]string{"x"}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRing_Append(b *testing.B) {
	r := newRing[[16]string](500)
	b.ReportAllocs()
	for b.Loop() {
		r.Append([16]string{"x"})
	}
}

func BenchmarkRing_Since(b *testing.B) {
	r := newRing[[16]string](500)
	for range 700 {
		r.Append([16]string{"x"})
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Since(690, 500)
	}
}
