package subnets

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// LeastSpan is how long the readings of a subnet must last for [Trend.RunsOut].
const LeastSpan = 24 * time.Hour

// Horizon is how far ahead a forecast looks: 30 days, but no more than 14 times as far as the
// readings go back.
func Horizon(span time.Duration) time.Duration { return 14 * min(span, mostAhead/14) }

const mostAhead = 30 * 24 * time.Hour

// RunsOut is when a subnet has no free address left. A time after the horizon is zero. The
// band from Early to Late holds the truth in 80 % of all cases.
type RunsOut struct {
	Early, Likely, Late time.Time     // 10, 50 and 90 % of the futures have run out by then
	PerHour             float64       // free addresses; negative: fewer
	Share               float64       // of the futures in which it runs out before the horizon
	Over                time.Duration // of the readings
}

const (
	step     = time.Hour
	mostPast = 60 * 24 // steps back that count
	futures  = 1000    // that are drawn
	day      = 24      // steps of a daily cycle
	cycles   = 3       // days that show one
)

// RunsOut forecasts when the free addresses are used up, from readings of at least [LeastSpan];
// false: they are of less. The addresses go on as a line that wanders (a random walk), with
// the daily cycle that three days or more have shown and the noise that was seen. How fast
// the line falls and how far it wanders are themselves uncertain, the more the shorter the
// readings. The futures drawn are always the same for the same readings.
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

// steps are the readings at equal distances, the last at the end: each the newest of its time.
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

// seasonOf is the daily cycle of values: by how much each step of the day differs from the
// mean of the day around it. It is zero where too few days were seen.
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

// model is a line that wanders, seen through noise.
type model struct {
	level float64 // at the end
	drift float64 // per step
	walk  float64 // variance of the wandering per step
	noise float64 // variance of what is seen around it
	width int     // steps that level is the mean of
}

// blocks is into how many parts the past is cut to see how far it wanders: their changes
// are hardly related.
const blocks = 8

// modelOf fits a model by the variance of the changes over one step and over an eighth of
// the past: wandering grows with the distance, noise does not.
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

// spread is the variance of the changes over so many steps.
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

// futures draws what may come, and returns after how many steps each has no address left, in
// order; ahead+1: in none of them.
func (m model) futures(past, ahead int, season [day]float64) []int {
	random := rand.New(rand.NewPCG(1, 2))
	n, w := float64(past-m.width), float64(m.width)
	out := make([]int, futures)
	for i := range out {
		var chi float64 // the variance was seen in few changes
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
