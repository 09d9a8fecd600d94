package ipam

import (
	"math/rand/v2"
	"testing"
)

type heapItem struct{ rank, at int }

func (x *heapItem) before(y *heapItem) bool { return x.rank < y.rank }
func (x *heapItem) position() *int          { return &x.at }

func TestHeap_RandomUpdates(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	items := make([]*heapItem, 200)
	for i := range items {
		items[i] = &heapItem{}
	}
	var h heap[*heapItem]
	for step := range 5000 {
		x := items[r.IntN(len(items))]
		x.rank = r.IntN(1000)
		h.update(x, r.IntN(4) > 0)
		var k checker
		checkHeap(&k, &h, "test")
		in, best := 0, 1000
		for _, y := range items {
			if y.at > 0 {
				in++
				best = min(best, y.rank)
			}
		}
		if len(k.broken) > 0 || in != len(h.items) || (in > 0 && h.best().rank != best) {
			t.Fatalf("step %d: %v; %d elements, %d know it", step, k.broken, len(h.items), in)
		}
	}
}
