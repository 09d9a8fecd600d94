package store

import (
	"slices"
	"time"
)

// Reading is EC2's count of a subnet's free addresses at one time.
type Reading struct {
	At   time.Time
	Free int
}

// Readings are those of one subnet, oldest first. They are never modified, only appended to.
type Readings []Reading

// Readings are a 120th of the time that they cover apart, within these limits.
const (
	leastApart = time.Minute
	mostApart  = time.Hour
	perSpan    = 120
	mostKept   = 2000 // two months
	mostKnown  = 20_000
)

// Add adds a reading if it is newer than the last, and not too close to it.
func (r Readings) Add(next Reading) Readings {
	if n := len(r); n > 0 {
		apart := min(max(r[n-1].At.Sub(r[0].At)/perSpan, leastApart), mostApart)
		if next.At.Sub(r[n-1].At) < apart {
			return r
		}
		if n >= mostKept {
			r = slices.Clone(r[n-mostKept+1:])
		}
	}
	return append(r, next)
}

// heard adds what a node reports about its subnets to the readings. The caller holds s.mu.
func (s *Store) heard(uses []use) {
	for _, u := range uses {
		if !u.listed || u.subnet.Available == nil || u.subnet.AsOf == nil {
			continue
		}
		before, known := s.readings[u.subnet.ID]
		if !known && len(s.readings) >= mostKnown {
			continue
		}
		if now := before.Add(Reading{*u.subnet.AsOf, *u.subnet.Available}); len(now) != len(before) || len(now) == mostKept {
			s.readings[u.subnet.ID] = now
		}
	}
}

// Remember takes readings of a subnet from before the first sample, oldest first; those that are not
// newer than what is already known are dropped.
func (s *Store) Remember(subnet string, of Readings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.readings[subnet]
	if !ok && len(s.readings) >= mostKnown {
		return
	}
	before := len(known)
	for _, r := range of[max(0, len(of)-mostKept):] {
		if n := len(known); n == 0 || r.At.After(known[n-1].At) {
			known = append(known, r)
		}
	}
	if len(known) == before {
		return
	}
	s.readings[subnet] = known[max(0, len(known)-mostKept):]
	s.touch()
}

// Precede takes readings of subnets from before the first sample, oldest first; those that are not older
// than what is already known are dropped.
func (s *Store) Precede(of map[string]Readings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, earlier := range of {
		known := s.readings[id]
		if len(known) > 0 {
			n, _ := slices.BinarySearchFunc(earlier, known[0].At, func(r Reading, at time.Time) int { return r.At.Compare(at) })
			earlier = earlier[:n]
		} else if len(s.readings) >= mostKnown {
			continue
		}
		all := slices.Concat(earlier, known)
		s.readings[id] = all[max(0, len(all)-mostKept):]
	}
	s.touch()
}
