package rules

import "time"

// RepairBackoff slows the repair of things that others remove again and again. The zero
// value has no history.
type RepairBackoff struct {
	things map[string]streak
}

// streak is a thing's repairs in short succession.
type streak struct {
	last  time.Time // when it was last restored
	times int       // in a row
}

const (
	// streakEnds is how long a thing must have stayed for its next loss to count as the
	// first.
	streakEnds = 2 * time.Minute
	// freeRepairs is how many times in a row a thing is restored at once.
	freeRepairs  = 5
	backoffFirst = time.Second
	backoffMax   = 30 * time.Second
	// maxStreaks bounds how many things are remembered.
	maxStreaks = 4096
)

// Wait returns how long to wait before restoring a thing found missing at now.
func (b *RepairBackoff) Wait(now time.Time, thing string) time.Duration {
	t, ok := b.things[thing]
	if !ok || t.times < freeRepairs {
		return 0
	}
	return max(0, t.last.Add(backoffPause(t.times)).Sub(now))
}

func backoffPause(times int) time.Duration {
	pause := backoffFirst
	for range times - freeRepairs {
		if pause *= 2; pause >= backoffMax {
			return backoffMax
		}
	}
	return pause
}

// Done records that a thing was restored at now, and returns how many times in a row.
func (b *RepairBackoff) Done(now time.Time, thing string) int {
	if b.things == nil {
		b.things = map[string]streak{}
	}
	t := b.things[thing]
	if now.Sub(t.last) >= streakEnds {
		t.times = 0
	}
	t.times++
	t.last = now
	if len(b.things) >= maxStreaks {
		b.forget(now)
	}
	b.things[thing] = t
	return t.times
}

// forget drops the things that have been quiet, or everything if none has.
func (b *RepairBackoff) forget(now time.Time) {
	for name, t := range b.things {
		if now.Sub(t.last) >= streakEnds {
			delete(b.things, name)
		}
	}
	if len(b.things) >= maxStreaks {
		clear(b.things)
	}
}

// Contested reports whether a thing was restored so often in a row that another program
// must be removing it.
func Contested(times int) bool { return times > freeRepairs }
