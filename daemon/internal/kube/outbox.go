package kube

import (
	"sync"
	"time"

	"cnictl/daemon/notice"
)

// Bounds of the waiting events.
const (
	maxWaitingEvents = 64
	// maxEventAge is how long API servers keep events by default; older ones are useless.
	maxEventAge = time.Hour
)

// outbox holds the events that wait to be sent, one of each kind: the first, which has the
// most detail, or the newest while the API server is away.
type outbox struct {
	filled chan struct{} // holds one token while something may wait

	mu       sync.Mutex
	limiter  *notice.Limiter
	waiting  map[eventKind]waitingEvent
	arrivals uint64
	dropped  uint64
	away     bool // the last event could not be sent
}

// eventKind is a kind of events; at most one event of a kind waits.
type eventKind struct {
	about          notice.Ref
	reason, action string
}

type waitingEvent struct {
	event      notice.Event
	at         time.Time
	arrival    uint64
	failures   int // failed attempts to send it or an event it replaced
	suppressed int // events of its kind that the limiter held back
}

func (w waitingEvent) kind() eventKind {
	return eventKind{w.event.About, w.event.Reason, w.event.Action}
}

func newOutbox(p notice.Policy) *outbox {
	return &outbox{filled: make(chan struct{}, 1), limiter: notice.NewLimiter(p), waiting: map[eventKind]waitingEvent{}}
}

// put adds an event, unless one of its kind is about to be sent. It does not block.
func (o *outbox) put(now time.Time, e notice.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.arrivals++
	w := waitingEvent{event: e, at: now, arrival: o.arrivals}
	if old, ok := o.waiting[w.kind()]; ok {
		if !o.away {
			return // the older one will be sent in a moment
		}
		o.limiter.Suppress(now, e)
		w.failures = old.failures
	}
	o.addLocked(w)
}

// addLocked adds a waiting event. If there are too many, it drops the oldest about a pod.
func (o *outbox) addLocked(w waitingEvent) {
	o.waiting[w.kind()] = w
	if len(o.waiting) > maxWaitingEvents {
		old, _ := o.first(func(a, b waitingEvent) bool {
			if a.event.About.OfNode() != b.event.About.OfNode() {
				return b.event.About.OfNode()
			}
			return a.arrival < b.arrival
		})
		delete(o.waiting, old.kind())
		o.dropped++
	}
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

// take returns the event to send next: the one with the fewest failures, so that one that
// always fails blocks no others, then the Node's, then the oldest. It removes events that
// are too old or that the limiter holds back.
func (o *outbox) take(now time.Time) (waitingEvent, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		w, ok := o.first(func(a, b waitingEvent) bool {
			switch {
			case a.failures != b.failures:
				return a.failures < b.failures
			case a.event.About.OfNode() != b.event.About.OfNode():
				return a.event.About.OfNode()
			}
			return a.arrival < b.arrival
		})
		if !ok {
			return waitingEvent{}, false
		}
		delete(o.waiting, w.kind())
		if now.Sub(w.at) > maxEventAge {
			o.dropped++
			continue
		}
		if w.suppressed, ok = o.limiter.Allow(now, w.event); ok {
			return w, true
		}
	}
}

// putBack returns an event that could not be sent, unless a newer one of its kind has
// arrived.
func (o *outbox) putBack(now time.Time, w waitingEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = true
	o.limiter.GiveBack(w.event, w.suppressed)
	w.failures++
	if newer, ok := o.waiting[w.kind()]; ok {
		o.limiter.Suppress(now, w.event)
		newer.failures = w.failures
		w = newer
	}
	o.addLocked(w)
}

// answered records that the API server accepted or refused an event.
func (o *outbox) answered(taken bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = false
	if !taken {
		o.dropped++
	}
}

// first returns the event that sorts before all others.
func (o *outbox) first(before func(a, b waitingEvent) bool) (found waitingEvent, ok bool) {
	for _, w := range o.waiting {
		if !ok || before(w, found) {
			found, ok = w, true
		}
	}
	return found, ok
}

// count returns how many events were dropped.
func (o *outbox) count() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}
