package sim

import (
	"time"

	"cnictl/capacity/whatif"
)

// random draws random values.
type random struct{ *whatif.Random }

// stream returns a generator for one purpose.
func stream(seed, purpose uint64) *random { return &random{whatif.Stream(seed, purpose)} }

// between returns a number in [low, high].
func (r *random) between(low, high int) int { return low + r.Below(high-low+1) }

// chance returns true with probability p.
func (r *random) chance(p float64) bool {
	return float64(r.Next()>>11)/(1<<53) < p
}

// span returns a duration in [low, high).
func (r *random) span(low, high time.Duration) time.Duration {
	return low + time.Duration(r.Below(int(high-low)))
}

func pick[T any](r *random, of ...T) T { return of[r.Below(len(of))] }

func shuffle[T any](r *random, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		j := r.Below(i + 1)
		s[i], s[j] = s[j], s[i]
	}
}
