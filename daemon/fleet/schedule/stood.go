package schedule

import "time"

// Beat is how often a Stood must be given the time while something is read.
const Beat = time.Second

// stoodAfter is how late a beat may be on a machine that is merely busy.
const stoodAfter = 5 * Beat

// Stood notices that the process, or the machine, stood still: it was suspended, the
// laptop slept. What was under way has then missed its deadline, which says nothing about
// who was asked.
type Stood struct{ last time.Time }

// At takes the time, every [Beat] at the latest. It returns how long nothing ran, 0:
// nothing of the kind.
func (s *Stood) At(now time.Time) time.Duration {
	last := s.last
	s.last = now
	// The monotonic clock goes on in a process that is stopped, that of the wall alone in
	// a machine that sleeps.
	late := max(now.Sub(last), now.Round(0).Sub(last.Round(0)))
	if last.IsZero() || late < stoodAfter {
		return 0
	}
	return late
}

// Rest notes that nothing is read: the next time may be given at any later time.
func (s *Stood) Rest() { s.last = time.Time{} }
