package live

import "time"

// Beat is how often a PauseDetector needs the time while a read is in flight.
const Beat = time.Second

// pausedAfter is how late a beat may be on a machine that is merely busy.
const pausedAfter = 5 * Beat

// PauseDetector detects that the process was stopped or the machine slept. Reads in flight
// have then missed their deadline, which says nothing about the nodes.
type PauseDetector struct{ last time.Time }

// At takes the current time, at least every [Beat]. It returns how long the process was
// paused; 0 if it was not.
func (s *PauseDetector) At(now time.Time) time.Duration {
	last := s.last
	s.last = now
	// The monotonic clock advances while the process is stopped, but only the wall clock
	// while the machine sleeps.
	late := max(now.Sub(last), now.Round(0).Sub(last.Round(0)))
	if last.IsZero() || late < pausedAfter {
		return 0
	}
	return late
}

// Rest records that no read is in flight: the next call of At may come at any time.
func (s *PauseDetector) Rest() { s.last = time.Time{} }
