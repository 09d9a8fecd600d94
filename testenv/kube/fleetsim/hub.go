package fleetsim

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// remembered is the minimum number of changes that a watch can go back; older versions get 410.
const remembered = 8192

// change is one change to an object. prev is the previous state, nil for a new object. Neither
// is modified afterwards.
type change struct {
	version  uint64
	resource *resource
	kind     watch.EventType
	now      runtime.Object
	prev     runtime.Object
}

// hub numbers the changes of all objects and passes them to watchers.
type hub struct {
	mu      sync.Mutex // guards the fields below
	version uint64
	ring    []change // the newest changes, oldest first; at most 2 * remembered are kept
	grown   chan struct{}
}

// firstVersion makes resource versions look like those of a cluster that has run for a
// while.
const firstVersion = 1000

func newHub() *hub { return &hub{version: firstVersion, grown: make(chan struct{})} }

func (h *hub) current() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version
}

// publish numbers a change and stores it; build creates the object with its number.
func (h *hub) publish(r *resource, kind watch.EventType, prev runtime.Object, build func(version uint64) runtime.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	h.ring = append(h.ring, change{h.version, r, kind, build(h.version), prev})
	if len(h.ring) >= 2*remembered {
		h.ring = append(make([]change, 0, 2*remembered), h.ring[len(h.ring)-remembered:]...)
	}
	close(h.grown)
	h.grown = make(chan struct{})
}

// oldest returns the version since which every change is stored.
func (h *hub) oldest() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.oldestLocked()
}

func (h *hub) oldestLocked() uint64 { return h.version - uint64(len(h.ring)) }

// after returns the changes after a version, or a channel that is closed at the next one.
// gone means that some of them are no longer stored.
func (h *hub) after(version uint64) (changes []change, next uint64, grown <-chan struct{}, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if version < h.oldestLocked() {
		return nil, 0, nil, true
	}
	if version >= h.version {
		return nil, version, h.grown, false
	}
	changes = h.ring[len(h.ring)-int(h.version-version):]
	return changes[:len(changes):len(changes)], h.version, h.grown, false
}

// follow calls see with every change of a resource after a version until the context ends or
// see returns false. It returns true if changes are no longer stored. It calls idle when there
// are no more changes, and whenever tick fires while it waits.
func (h *hub) follow(ctx context.Context, r *resource, version uint64, tick <-chan struct{}, see func(change) bool, idle func(version uint64) bool) (gone bool) {
	for {
		changes, next, grown, gone := h.after(version)
		if gone {
			return true
		}
		for i := range changes {
			if changes[i].resource == r && !see(changes[i]) {
				return false
			}
		}
		version = next
		if len(changes) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return false
		case <-grown:
		case <-tick:
			if !idle(version) {
				return false
			}
		}
	}
}
