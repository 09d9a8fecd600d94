package inventory

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// kinds generate the free addresses of a subnet of 4,091 addresses, hour by hour, as they go in
// clusters. begin is the hour of the week of the first.
var kinds = map[string]func(r *rand.Rand, begin, hours int) []float64{
	"flat": func(r *rand.Rand, _, hours int) []float64 {
		level, noise := between(r, 500, 3500), between(r, 0, 5)
		return series(hours, func(int) float64 { return level + noise*r.NormFloat64() })
	},
	"daily wave": func(r *rand.Rand, begin, hours int) []float64 {
		level, wave, noise := between(r, 1000, 3000), between(r, 50, 400), between(r, 5, 20)
		peak := r.IntN(24)
		return series(hours, func(i int) float64 { return level + wave*daily(begin+i-peak) + noise*r.NormFloat64() })
	},
	"weekday/weekend": func(r *rand.Rand, begin, hours int) []float64 {
		level, wave, calm, noise := between(r, 1000, 2500), between(r, 50, 300), between(r, 100, 600), between(r, 5, 20)
		peak := r.IntN(24)
		return series(hours, func(i int) float64 {
			if weekend(begin + i) {
				return level + calm + .3*wave*daily(begin+i-peak) + noise*r.NormFloat64()
			}
			return level + wave*daily(begin+i-peak) + noise*r.NormFloat64()
		})
	},
	"linear drain": func(r *rand.Rand, _, hours int) []float64 {
		level, slope, noise := between(r, 2500, 4000), between(r, 1, 10), between(r, 3, 20)
		return series(hours, func(i int) float64 { return level - slope*float64(i) + noise*r.NormFloat64() })
	},
	"deploy steps": func(r *rand.Rand, _, hours int) []float64 {
		level, rate, size, noise := between(r, 1500, 3500), 1/between(r, 4, 24), between(r, 10, 80), between(r, 0, 5)
		return series(hours, func(int) float64 {
			surge := 0.
			if r.Float64() < rate {
				step := size * between(r, .5, 1.5)
				if surge = step; r.Float64() < .3 { // a service that scales in
					step = -step
				}
				level -= step
			}
			return level - surge + noise*r.NormFloat64() // old and new pods exist for a while
		})
	},
	"growth and daily wave": func(r *rand.Rand, begin, hours int) []float64 {
		level, slope, wave, noise := between(r, 2500, 4000), between(r, 1, 6), between(r, 50, 300), between(r, 5, 20)
		peak := r.IntN(24)
		return series(hours, func(i int) float64 {
			return level - slope*float64(i) + wave*daily(begin+i-peak) + noise*r.NormFloat64()
		})
	},
	"noisy batch jobs": func(r *rand.Rand, _, hours int) []float64 {
		level, rate, noise := between(r, 2000, 3500), between(r, .05, .3), between(r, 2, 10)
		type job struct{ size, end float64 }
		var jobs []job
		return series(hours, func(i int) float64 {
			if r.Float64() < rate {
				jobs = append(jobs, job{between(r, 50, 400), float64(i) + between(r, 1, 6)})
			}
			jobs = slices.DeleteFunc(jobs, func(j job) bool { return j.end < float64(i) })
			busy := 0.
			for _, j := range jobs {
				busy += j.size
			}
			return level - busy + noise*r.NormFloat64()
		})
	},
	"nodes removed": func(r *rand.Rand, begin, hours int) []float64 {
		level, slope, wave, noise := between(r, 1000, 2000), between(r, 0, 2), between(r, 0, 100), between(r, 2, 15)
		when, more, peak := r.IntN(hours-3*24-6), between(r, 500, 2000), r.IntN(24)
		return series(hours, func(i int) float64 {
			free := level - slope*float64(i) + wave*daily(begin+i-peak) + noise*r.NormFloat64()
			if i >= when {
				free += more
			}
			return free
		})
	},
}

func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

func daily(hour int) float64 { return math.Cos(2 * math.Pi * float64(hour) / 24) }

// weekend: a week begins on Monday.
func weekend(hour int) bool { return hour%(7*24) >= 5*24 }

// series are counts: whole, and at most those of the subnet.
func series(hours int, at func(i int) float64) []float64 {
	out := make([]float64, hours)
	for i := range out {
		out[i] = math.Round(min(max(at(i), 0), 4091))
	}
	return out
}

// monday is when the synthetic weeks begin.
var monday = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
