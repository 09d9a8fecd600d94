package whatif

import (
	"math"
	"math/bits"
	"time"
)

// Random is a small seeded generator (splitmix64) for predictions and testenv/sim. The
// standard library's streams are not guaranteed to stay the same, and tests keep seeds.
type Random struct{ state uint64 }

// Stream returns a generator for one purpose, so that an additional draw for one purpose
// does not change the draws for others.
func Stream(seed, purpose uint64) *Random {
	r := &Random{state: seed*0x9e3779b97f4a7c15 ^ purpose*0xd1342543de82ef95}
	r.Next()
	return r
}

// Next returns 64 random bits.
func (r *Random) Next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a number in [0, n); 0 if n is not positive.
func (r *Random) Below(n int) int {
	if n <= 0 {
		return 0
	}
	high, _ := bits.Mul64(r.Next(), uint64(n))
	return int(high)
}

// exponential returns an exponentially distributed duration with that mean.
func (r *Random) exponential(mean time.Duration) time.Duration {
	u := float64(r.Next()>>11+1) / (1 << 53) // (0, 1]
	return time.Duration(-math.Log(u) * float64(mean))
}
