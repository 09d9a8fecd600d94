package inventory

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// LeastSpan is the minimum time that readings must cover for [Trend.RunsOut].
const LeastSpan = 24 * time.Hour

// Horizon is how far ahead a forecast looks: 30 days, but at most 14 times the span of the
// readings.
func Horizon(span time.Duration) time.Duration { return 14 * min(span, mostAhead/14) }

const mostAhead = 30 * 24 * time.Hour

// RunsOut is when a subnet runs out of free addresses. Times after the horizon are zero. The
// interval from Early to Late contains the true time in 80 % of all cases.
type RunsOut struct {
	Early, Likely, Late time.Time     // by then, 10, 50 and 90 % of the futures have run out
	PerHour             float64       // free addresses; negative if their number falls
	Share               float64       // of the futures that run out before the horizon
	Over                time.Duration // span of the readings
}

const (
	step     = time.Hour
	mostPast = 60 * 24 // steps back that are used
	futures  = 1000    // number of simulated futures
	day      = 24      // steps per day
	cycles   = 3       // days needed to detect a daily cycle
)

// RunsOut forecasts when the free addresses run out, from readings that cover at least
// [LeastSpan]; false if they cover less. The model is a random walk with drift, plus the observed
// noise and, after three days, the observed daily cycle. The drift and the variance of the walk
// are uncertain too, the more so the shorter the readings. The simulated futures are always the
// same for the same readings.
func (t Trend) RunsOut() (RunsOut, bool) {
	n := len(t)
	if n == 0 || t[n-1].At.Sub(t[0].At) < LeastSpan {
		return RunsOut{}, false
	}
	end := t[n-1]
	out := RunsOut{Over: end.At.Sub(t[0].At)}
	if end.Free <= 0 {
		out.Early, out.Likely, out.Late, out.Share = end.At, end.At, end.At, 1
		return out, true
	}
	values := t.steps()
	season := seasonOf(values)
	for i := range values {
		values[i] -= season[i%day]
	}
	m := modelOf(values)
	out.PerHour = m.drift
	ahead := int(Horizon(out.Over) / step)
	left := m.futures(len(values), ahead, season)
	before, _ := slices.BinarySearch(left, ahead+1)
	out.Share = float64(before) / futures
	at := func(share float64) time.Time {
		if s := left[int(share*futures)]; s <= ahead {
			return end.At.Add(time.Duration(s) * step)
		}
		return time.Time{}
	}
	out.Early, out.Likely, out.Late = at(.1), at(.5), at(.9)
	return out, true
}

// steps resamples the readings at equal intervals up to the last one: each value is the newest
// reading at that time.
func (t Trend) steps() []float64 {
	end := t[len(t)-1].At
	count := min(int(end.Sub(t[0].At)/step)+1, mostPast)
	out := make([]float64, count)
	for i, at := count-1, len(t)-1; i >= 0; i-- {
		for at > 0 && t[at].At.After(end.Add(-time.Duration(count-1-i)*step)) {
			at--
		}
		out[i] = float64(t[at].Free)
	}
	return out
}

// seasonOf returns the daily cycle of values: by how much each step of the day differs from the
// mean of the day around it. It is zero if there are too few days.
func seasonOf(values []float64) (season [day]float64) {
	if len(values) < cycles*day {
		return season
	}
	var count [day]int
	var mean float64
	for _, v := range values[:day] {
		mean += v / day
	}
	for i := day / 2; i+day/2 < len(values); i++ {
		season[i%day] += values[i] - mean
		count[i%day]++
		mean += (values[i+day/2] - values[i-day/2]) / day
	}
	var all float64
	for i := range season {
		season[i] /= float64(max(count[i], 1))
		all += season[i] / day
	}
	for i := range season {
		season[i] -= all
	}
	return season
}

// model is a random walk with drift, observed through noise.
type model struct {
	level float64 // at the end
	drift float64 // per step
	walk  float64 // variance of the walk per step
	noise float64 // variance of the observations around it
	width int     // number of steps that level is the mean of
}

// blocks is the number of parts into which the past is divided to estimate the walk: their
// changes are nearly independent.
const blocks = 8

// modelOf fits a model to the variance of the changes over one step and over an eighth of the
// past: the variance of the walk grows with the distance, that of the noise does not.
func modelOf(values []float64) model {
	long := (len(values) - 1) / blocks
	near, far := spread(values, 1), spread(values, long)
	m := model{width: 1}
	m.walk = near // a walk without noise
	if long > 1 {
		m.walk = min(max((far-near)/float64(long-1), 0), far/float64(long))
	}
	m.noise = max(near-m.walk, 0) / 2
	if m.noise > 0 {
		m.width = len(values) / 4
		if m.walk > 0 {
			m.width = min(m.width, 1+int(math.Sqrt(m.noise/m.walk)))
		}
	}
	last := len(values) - m.width
	m.level = mean(values[last:])
	m.drift = (m.level - mean(values[:m.width])) / float64(last)
	return m
}

// spread is the variance of the changes over the given number of steps.
func spread(values []float64, over int) float64 {
	var changes []float64
	for i := len(values) - 1; i-over >= 0; i -= over {
		changes = append(changes, values[i]-values[i-over])
	}
	if len(changes) < 2 {
		return 0
	}
	middle, sum := mean(changes), 0.
	for _, c := range changes {
		sum += (c - middle) * (c - middle)
	}
	return sum / float64(len(changes)-1)
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// futures simulates the future and returns, sorted, after how many steps each run has no address
// left; ahead+1 if it never runs out.
func (m model) futures(past, ahead int, season [day]float64) []int {
	random := rand.New(rand.NewPCG(1, 2))
	n, w := float64(past-m.width), float64(m.width)
	out := make([]int, futures)
	for i := range out {
		var chi float64 // the variance was estimated from few changes
		for range blocks - 1 {
			x := random.NormFloat64()
			chi += x * x / (blocks - 1)
		}
		walk := m.walk / max(chi, .05)
		drift := m.drift + random.NormFloat64()*math.Sqrt(walk/n+2*m.noise/w/(n*n))
		level := m.level + random.NormFloat64()*math.Sqrt(m.noise/w) + drift*(w-1)/2
		wander, noise := math.Sqrt(walk), math.Sqrt(m.noise)
		s := 1
		for ; s <= ahead; s++ {
			level += drift + wander*random.NormFloat64()
			if level+season[(past-1+s)%day]+noise*random.NormFloat64() <= 0 {
				break
			}
		}
		out[i] = s
	}
	slices.Sort(out)
	return out
}
