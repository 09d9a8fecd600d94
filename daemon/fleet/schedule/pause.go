package schedule

import "time"

// Beat is how often a PauseDetector must be given the time while a read is in flight.
const Beat = time.Second

// pausedAfter is how late a beat may be on a machine that is merely busy.
const pausedAfter = 5 * Beat

// PauseDetector notices that the process or the machine was paused: it was suspended, or
// the laptop slept. Reads in flight have then missed their deadline, which says nothing
// about the nodes.
type PauseDetector struct{ last time.Time }

// At takes the current time, at least every [Beat]. It returns how long nothing ran; 0
// means no pause.
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

// Rest notes that no read is in flight: the next call of At may come at any later time.
func (s *PauseDetector) Rest() { s.last = time.Time{} }
