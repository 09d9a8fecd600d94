package record

import (
	"sync"
	"time"
)

// clock is the time in a recording, which goes on from an anchor at a speed. Its lock is
// held for a few instructions: who asks for the time never waits for a seek.
type clock struct {
	now func() time.Time // the real one
	end time.Time        // of the recording: time stands still there

	mu     sync.Mutex
	at     time.Time // in the recording when the real one showed real
	real   time.Time
	speed  float64
	paused bool
}

// position is where the recording stands.
func (c *clock) position() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.here()
}

// here is position with the lock held.
func (c *clock) here() time.Time {
	at := c.at
	if !c.paused {
		at = at.Add(time.Duration(float64(c.now().Sub(c.real)) * c.speed))
	}
	if at.After(c.end) {
		at = c.end
	}
	return at
}

// set goes to a time.
func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.real = at, c.now()
}

// change makes now the anchor before it changes how time goes.
func (c *clock) change(how func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.real = c.here(), c.now()
	how()
}

// rate is the speed.
func (c *clock) rate() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.speed
}
