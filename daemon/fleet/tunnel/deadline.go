package tunnel

import (
	"sync"
	"time"
)

// deadline is a moment that can be moved, as a channel.
type deadline struct {
	mu    sync.Mutex // guards all below
	at    time.Time
	timer *time.Timer
	past  chan struct{} // closed when it has come
}

func newDeadline() *deadline { return &deadline{past: make(chan struct{})} }

// set moves it; the zero time is never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
	if d.timer != nil && !d.timer.Stop() {
		<-d.past // its function runs or has run
	}
	d.timer = nil
	closed := false
	select {
	case <-d.past:
		closed = true
	default:
	}
	if t.IsZero() || time.Until(t) > 0 {
		if closed {
			d.past = make(chan struct{})
		}
		if !t.IsZero() {
			past := d.past
			d.timer = time.AfterFunc(time.Until(t), func() { close(past) })
		}
		return
	}
	if !closed {
		close(d.past)
	}
}

func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.past
}

func (d *deadline) time() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

// stop lets no timer run on.
func (d *deadline) stop() { d.set(time.Time{}) }
