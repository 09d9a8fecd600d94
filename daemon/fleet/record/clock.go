package record

import (
	"sync"
	"time"
)

// clock is the time in a recording, which runs from an anchor at a given speed. Its lock is held
// only for a few instructions: reading the time never waits for a seek.
type clock struct {
	now func() time.Time // the real time
	end time.Time        // of the recording, where time stops

	mu     sync.Mutex
	at     time.Time // anchor: the time in the recording at real
	real   time.Time
	speed  float64
	paused bool
}

// position returns the current time in the recording.
func (c *clock) position() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.here()
}

// here is position for callers that hold the lock.
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

// set moves to a time.
func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.real = at, c.now()
}

// change sets the anchor to now before it changes how time runs.
func (c *clock) change(how func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.real = c.here(), c.now()
	how()
}

// rate returns the speed.
func (c *clock) rate() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.speed
}
