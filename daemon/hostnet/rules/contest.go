package rules

import "time"

// Contests bounds the repair of things that others remove again and again.
// The zero value knows of none.
type Contests struct {
	things map[string]contest
}

type contest struct {
	last  time.Time // it was brought back
	times int       // in a row
}

const (
	// contestQuiet is how long a thing must have stayed for its next loss to count as
	// the first.
	contestQuiet = 2 * time.Minute
	// contestFree is how many times in a row it is brought back at once.
	contestFree  = 5
	contestFirst = time.Second
	contestMost  = 30 * time.Second
	// contestsMost bounds what is remembered.
	contestsMost = 4096
)

// Wait is how long to leave a thing alone that is missing at now.
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

// Done notes that a thing was brought back at now, and returns how often in a row.
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

// forget drops what has been quiet, and everything where nothing has.
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

// Contested reports whether a thing was brought back so often in a row that somebody
// must be working against it.
func Contested(times int) bool { return times > contestFree }
