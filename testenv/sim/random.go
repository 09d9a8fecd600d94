package sim

import (
	"math/bits"
	"time"
)

// random is a small seeded generator (splitmix64): the standard library's streams are
// not promised to stay the same, and seeds are kept in tests.
type random struct{ state uint64 }

// stream returns a generator for one purpose, so that a new draw of one does not change
// what the others draw.
func stream(seed, purpose uint64) *random {
	r := &random{state: seed*0x9e3779b97f4a7c15 ^ purpose*0xd1342543de82ef95}
	r.next()
	return r
}

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number in [0, n); 0 if n is not positive.
func (r *random) below(n int) int {
	if n <= 0 {
		return 0
	}
	high, _ := bits.Mul64(r.next(), uint64(n))
	return int(high)
}

// between returns a number in [low, high].
func (r *random) between(low, high int) int { return low + r.below(high-low+1) }

// chance is true in that part of all cases.
func (r *random) chance(part float64) bool {
	return float64(r.next()>>11)/(1<<53) < part
}

// span returns a duration in [low, high).
func (r *random) span(low, high time.Duration) time.Duration {
	return low + time.Duration(r.below(int(high-low)))
}

func pick[T any](r *random, of ...T) T { return of[r.below(len(of))] }

func shuffle[T any](r *random, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		j := r.below(i + 1)
		s[i], s[j] = s[j], s[i]
	}
}
