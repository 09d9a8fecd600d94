package whatif

import (
	"math"
	"math/bits"
	"time"
)

// random is a small seeded generator (splitmix64), as in testenv/sim: a seed gives the same
// run with every release of Go.
type random struct{ state uint64 }

// stream returns a generator for one purpose.
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

// below returns a number in [0, n).
func (r *random) below(n int) int {
	high, _ := bits.Mul64(r.next(), uint64(n))
	return int(high)
}

// exponential returns a duration of an exponential distribution with that mean.
func (r *random) exponential(mean time.Duration) time.Duration {
	u := float64(r.next()>>11+1) / (1 << 53) // (0, 1]
	return time.Duration(-math.Log(u) * float64(mean))
}
