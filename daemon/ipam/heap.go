package ipam

// ranked is an element of a heap. position holds its index plus one, so the zero value of an
// element is in no heap.
type ranked[T any] interface {
	before(T) bool
	position() *int
}

// heap is a binary heap whose elements know their position, so that any of them can be moved
// or removed without a search.
type heap[T ranked[T]] struct{ items []T }

func (h *heap[T]) empty() bool { return len(h.items) == 0 }

// best is the first element; the heap must not be empty.
func (h *heap[T]) best() T { return h.items[0] }

// update moves x to its place after its rank changed. in says whether x belongs in the heap at
// all.
func (h *heap[T]) update(x T, in bool) {
	at := *x.position() - 1
	switch {
	case in && at < 0:
		h.items = append(h.items, x)
		at = len(h.items) - 1
		*x.position() = at + 1
		h.up(at)
	case in:
		if !h.up(at) {
			h.down(at)
		}
	case at >= 0:
		h.remove(at)
	}
}

func (h *heap[T]) remove(at int) {
	last := len(h.items) - 1
	*h.items[at].position() = 0
	if at != last {
		h.items[at] = h.items[last]
		*h.items[at].position() = at + 1
	}
	var zero T
	h.items[last] = zero
	h.items = h.items[:last]
	if at != last && !h.up(at) {
		h.down(at)
	}
}

func (h *heap[T]) up(at int) (moved bool) {
	for at > 0 {
		parent := (at - 1) / 2
		if !h.items[at].before(h.items[parent]) {
			return moved
		}
		h.swap(at, parent)
		at, moved = parent, true
	}
	return moved
}

func (h *heap[T]) down(at int) {
	for {
		child := 2*at + 1
		if child >= len(h.items) {
			return
		}
		if right := child + 1; right < len(h.items) && h.items[right].before(h.items[child]) {
			child = right
		}
		if !h.items[child].before(h.items[at]) {
			return
		}
		h.swap(at, child)
		at = child
	}
}

func (h *heap[T]) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.items[i].position() = i + 1
	*h.items[j].position() = j + 1
}
