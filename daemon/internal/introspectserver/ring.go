package introspectserver

// ring holds the newest items of a sequence, up to its capacity, each with its number, so
// that a reader who knows the last number it has seen loses and repeats nothing, and learns
// how many it has missed. Numbers start at 1 and never repeat. It has no lock.
type ring[T any] struct {
	items []T    // item n is at (n−1) mod capacity
	last  uint64 // number of the newest item, 0 = none yet
}

// newRing makes a ring for capacity items, which must be at least 1. It never grows.
func newRing[T any](capacity int) *ring[T] {
	return &ring[T]{items: make([]T, capacity)}
}

// Append adds an item in place of the oldest and returns its number. It does not
// allocate.
func (r *ring[T]) Append(item T) uint64 {
	r.last++
	r.items[r.at(r.last)] = item
	return r.last
}

// Last is the number of the newest item, 0 while there is none.
func (r *ring[T]) Last() uint64 { return r.last }

// First is the number of the oldest item that is still there, 1 while there is none.
func (r *ring[T]) First() uint64 {
	if kept := uint64(len(r.items)); r.last > kept {
		return r.last - kept + 1
	}
	return 1
}

// Since copies the items after a number, oldest first and at most limit, and returns
// the number of the first of them. missed counts the items after that number that are
// no longer there. A number that is not reached yet gives nothing.
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
