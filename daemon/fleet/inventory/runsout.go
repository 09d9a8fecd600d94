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
	week     = 7 * day
	cycles   = 3         // days needed to detect a daily cycle
	weekly   = week + 48 // steps needed to detect a weekly one: two days that can be compared
)

// RunsOut forecasts when the free addresses run out, from readings that cover at least
// [LeastSpan]; false if they cover less. The model is a random walk with drift around the daily and
// the weekly cycle, plus noise, all as observed. The drift and the variance of the walk are uncertain
// too, the more so the shorter the readings. The simulated futures are always the same for the same
// readings.
func (t Trend) RunsOut() (RunsOut, bool) {
	f, ok := t.fit()
	if !ok {
		return RunsOut{}, false
	}
	end := t[len(t)-1]
	out := RunsOut{Over: end.At.Sub(t[0].At)}
	if end.Free <= 0 {
		out.Early, out.Likely, out.Late, out.Share = end.At, end.At, end.At, 1
		return out, true
	}
	out.PerHour = f.drift
	ahead := int(Horizon(out.Over) / step)
	left := slices.Repeat([]int{ahead + 1}, futures)
	f.simulate(ahead, func(run, s int, free float64) bool {
		if free > 0 {
			return true
		}
		left[run] = s
		return false
	})
	slices.Sort(left)
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

// Expected is a forecast of the free addresses at one time: 10, 50 and 90 % of the futures have fewer.
type Expected struct{ Low, Likely, High float64 }

// Expect forecasts the free addresses at times after the last reading, in whole hours; false if the
// readings cover less than [LeastSpan].
func (t Trend) Expect(ahead ...time.Duration) ([]Expected, bool) {
	f, ok := t.fit()
	if !ok {
		return nil, false
	}
	values := make([][]float64, len(ahead))
	f.simulate(int(slices.Max(ahead)/step), func(_, s int, free float64) bool {
		for i, a := range ahead {
			if s == int(a/step) {
				values[i] = append(values[i], max(free, 0))
			}
		}
		return true
	})
	out := make([]Expected, len(ahead))
	for i, v := range values {
		slices.Sort(v)
		out[i] = Expected{v[futures/10], v[futures/2], v[futures*9/10-1]}
	}
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

// fitted is a model with the cycles around it.
type fitted struct {
	model
	past   int           // number of steps that were fitted
	cycles [week]float64 // by step since the first, modulo the week
}

// fit finds the model of the readings; false if they cover less than [LeastSpan].
func (t Trend) fit() (f fitted, ok bool) {
	n := len(t)
	if n == 0 || t[n-1].At.Sub(t[0].At) < LeastSpan {
		return f, false
	}
	values := t.steps()
	if len(values) >= cycles*day {
		level(values)
		days := dayOf(values)
		f.add(days[:], clamp((alike(changes(values, day/4), day)-.1)/.3), values)
	}
	if len(values) >= weekly {
		if same := alike(changes(values, day), week); same > .5 {
			f.add(weekOf(values), same, values)
		}
	}
	f.past, f.model = len(values), modelOf(values)
	return f, true
}

// add makes a cycle, as far as it repeats, part of the model and takes it out of the values.
func (f *fitted) add(cycle []float64, weight float64, values []float64) {
	for i := range f.cycles {
		f.cycles[i] += weight * cycle[i%len(cycle)]
	}
	for i := range values {
		values[i] -= weight * cycle[i%len(cycle)]
	}
}

// level takes out a change that dwarfs all others: an enlarged subnet or a removed node
// group. That neither repeats nor belongs to a trend.
func level(values []float64) {
	at, first, second := 0, 0., 0.
	for i := 1; i < len(values); i++ {
		switch c := math.Abs(values[i] - values[i-1]); {
		case c > first:
			at, first, second = i, c, first
		case c > second:
			second = c
		}
	}
	if first <= 3*second || at == 0 {
		return
	}
	by := values[at] - values[at-1]
	for i := range at {
		values[i] += by
	}
}

// changes returns the changes over a number of steps.
func changes(values []float64, over int) []float64 {
	out := make([]float64, 0, len(values))
	for i := over; i < len(values); i++ {
		out = append(out, values[i]-values[i-over])
	}
	return out
}

// alike is how much values resemble those so many steps earlier, as a correlation.
func alike(values []float64, apart int) float64 {
	middle := mean(values)
	var both, now, then float64
	for i := apart; i < len(values); i++ {
		a, b := values[i]-middle, values[i-apart]-middle
		both, now, then = both+a*b, now+a*a, then+b*b
	}
	if now == 0 || then == 0 {
		return 0
	}
	return both / math.Sqrt(now*then)
}

func clamp(share float64) float64 { return min(max(share, 0), 1) }

// dayOf returns the daily cycle of values: by how much each step of the day differs from the mean of
// the day around it.
func dayOf(values []float64) (cycle [day]float64) {
	var count [day]int
	var mean float64
	for _, v := range values[:day] {
		mean += v / day
	}
	for i := day / 2; i+day/2 < len(values); i++ {
		cycle[i%day] += values[i] - mean
		count[i%day]++
		mean += (values[i+day/2] - values[i-day/2]) / day
	}
	for i := range cycle {
		cycle[i] /= float64(max(count[i], 1))
	}
	center(cycle[:])
	return cycle
}

// weekOf returns the weekly cycle of values without a daily one: by how much each step of the week,
// smoothed over five, differs from a line with the trend from one week to the next.
func weekOf(values []float64) []float64 {
	n := len(values)
	slope := (mean(values[week:]) - mean(values[:n-week])) / week
	var raw, count [week]float64
	for i, v := range values {
		raw[i%week] += v - slope*float64(i)
		count[i%week]++
	}
	out := make([]float64, week)
	for i := range raw {
		for by := range 5 {
			near := (i + by - 2 + week) % week
			out[i] += raw[near] / count[near] / 5
		}
	}
	center(out)
	return out
}

// center makes the mean zero.
func center(cycle []float64) {
	middle := mean(cycle)
	for i := range cycle {
		cycle[i] -= middle
	}
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
	m.measure(values)
	wide := len(values) / 4
	if len(values) >= weekly && m.width < wide && m.missed(values, wide) < .9*m.missed(values, m.width) {
		m.width, m.walk, m.noise = wide, 0, 0
		m.measure(values)
		for i, v := range values { // what looks like a walk is noise that lasts for some steps
			off := v - m.level - m.drift*(float64(i-len(values))+float64(wide)/2)
			m.noise += off * off / float64(len(values)-1)
		}
	}
	return m
}

// measure sets the level at the end, and the drift since the beginning.
func (m *model) measure(values []float64) {
	last := len(values) - m.width
	m.level = mean(values[last:])
	m.drift = (m.level - mean(values[:m.width])) / float64(last)
}

// unsure is the variance of the drift, as measured over so many steps.
func (m *model) unsure(past int) float64 {
	n, w := float64(past-m.width), float64(m.width)
	return m.walk/n + 2*m.noise/w/(n*n)
}

// missed sums up by how much forecasts a day ahead would have been wrong, with a level that is the mean
// of so many steps.
func (m *model) missed(values []float64, width int) (sum float64) {
	for at := len(values) / 4; at+day <= len(values); at += 4 {
		sum += math.Abs(values[at+day-1] - mean(values[at-width:at]) - m.drift*(day-1+float64(width+1)/2))
	}
	return sum
}

// spread is the variance of the changes over the given number of steps.
func spread(values []float64, over int) float64 {
	var apart []float64
	for i := len(values) - 1; i-over >= 0; i -= over {
		apart = append(apart, values[i]-values[i-over])
	}
	if len(apart) < 2 {
		return 0
	}
	middle, sum := mean(apart), 0.
	for _, c := range apart {
		sum += (c - middle) * (c - middle)
	}
	return sum / float64(len(apart)-1)
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// simulate calls visit for each step ahead of each future, until it returns false.
func (f *fitted) simulate(ahead int, visit func(run, step int, free float64) (goOn bool)) {
	random := rand.New(rand.NewPCG(1, 2))
	w, noise := float64(f.width), math.Sqrt(f.noise)
	for run := range futures {
		var chi float64 // the variance was estimated from few changes
		for range blocks - 1 {
			x := random.NormFloat64()
			chi += x * x / (blocks - 1)
		}
		m := f.model
		m.walk /= max(chi, .05)
		drift := f.drift + random.NormFloat64()*math.Sqrt(m.unsure(f.past))
		level := f.level + random.NormFloat64()*math.Sqrt(f.noise/w) + drift*(w-1)/2
		wander := math.Sqrt(m.walk)
		for s := 1; s <= ahead; s++ {
			level += drift + wander*random.NormFloat64()
			if !visit(run, s, level+f.cycles[(f.past-1+s)%week]+noise*random.NormFloat64()) {
				break
			}
		}
	}
}
