package rules

import "time"

// Contests limits the repair of things that others remove again and again. The zero value
// has no history.
type Contests struct {
	things map[string]contest
}

type contest struct {
	last  time.Time // when it was last restored
	times int       // in a row
}

const (
	// contestQuiet is how long a thing must have stayed for its next loss to count as the
	// first.
	contestQuiet = 2 * time.Minute
	// contestFree is how many times in a row a thing is restored at once.
	contestFree  = 5
	contestFirst = time.Second
	contestMost  = 30 * time.Second
	// contestsMost bounds how many things are remembered.
	contestsMost = 4096
)

// Wait returns how long to wait before restoring a thing found missing at now.
func (c *Contests) Wait(now time.Time, thing string) time.Duration {
	t, ok := c.things[thing]
	if !ok || t.times < contestFree {
		return 0
	}
	return max(0, t.last.Add(contestPause(t.times)).Sub(now))
}

func contestPause(times int) time.Duration {
	pause := contestFirst
	for range times - contestFree {
		if pause *= 2; pause >= contestMost {
			return contestMost
		}
	}
	return pause
}

// Done records that a thing was restored at now, and returns how many times in a row.
func (c *Contests) Done(now time.Time, thing string) int {
	if c.things == nil {
		c.things = map[string]contest{}
	}
	t := c.things[thing]
	if now.Sub(t.last) >= contestQuiet {
		t.times = 0
	}
	t.times++
	t.last = now
	if len(c.things) >= contestsMost {
		c.forget(now)
	}
	c.things[thing] = t
	return t.times
}

// forget drops the things that have been quiet, or everything if none has.
func (c *Contests) forget(now time.Time) {
	for name, t := range c.things {
		if now.Sub(t.last) >= contestQuiet {
			delete(c.things, name)
		}
	}
	if len(c.things) >= contestsMost {
		clear(c.things)
	}
}

// Contested reports whether a thing was restored so often in a row that another program
// must be removing it.
func Contested(times int) bool { return times > contestFree }
