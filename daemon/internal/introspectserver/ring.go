package introspectserver

// ring holds the newest items of a sequence, up to its capacity, each with a number. A reader
// who knows the last number it has seen loses and repeats nothing, and learns how many items
// it has missed. Numbers start at 1 and never repeat. A ring has no lock.
type ring[T any] struct {
	items []T    // item n is at (n−1) mod capacity
	last  uint64 // number of the newest item, 0 = none yet
}

// newRing makes a ring for capacity items, which must be at least 1. It never grows.
func newRing[T any](capacity int) *ring[T] {
	return &ring[T]{items: make([]T, capacity)}
}

// Append adds an item, replacing the oldest if full, and returns its number. It does not
// allocate.
func (r *ring[T]) Append(item T) uint64 {
	r.last++
	r.items[r.at(r.last)] = item
	return r.last
}

// Last returns the number of the newest item, 0 if none.
func (r *ring[T]) Last() uint64 { return r.last }

// First returns the number of the oldest item still held, 1 if none.
func (r *ring[T]) First() uint64 {
	if kept := uint64(len(r.items)); r.last > kept {
		return r.last - kept + 1
	}
	return 1
}

// Since returns a copy of the items after a number, oldest first and at most limit, and the
// number of the first one. missed counts the items after that number that are no longer
// held. A number not reached yet returns nothing.
func (r *ring[T]) Since(after uint64, limit int) (items []T, first, missed uint64) {
	first = after + 1
	if after >= r.last {
		return nil, first, 0
	}
	if oldest := r.First(); first < oldest {
		missed = oldest - first
		first = oldest
	}
	n := min(r.last-first+1, uint64(max(0, limit)))
	items = make([]T, n)
	for i := range items {
		items[i] = r.items[r.at(first+uint64(i))]
	}
	return items, first, missed
}

func (r *ring[T]) at(n uint64) uint64 { return (n - 1) % uint64(len(r.items)) }
