package subnets

import (
	"math"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
)

// Reading is EC2's count of a subnet's free addresses at one time.
type Reading struct {
	At   time.Time
	Free int
}

// keep bounds the readings of one subnet.
const keep = 120

// Trend are the readings of one subnet, oldest first.
type Trend []Reading

// Take adds a reading that is newer than the last.
func (t Trend) Take(r Reading) Trend {
	t = t.add(r)
	if len(t) > keep {
		t = append(Trend(nil), t[len(t)-keep:]...)
	}
	return t
}

// add keeps all readings.
func (t Trend) add(r Reading) Trend {
	if n := len(t); n > 0 && !r.At.After(t[n-1].At) {
		return t
	}
	return append(t, r)
}

// Trends are those of a fleet, by subnet.
type Trends map[string]Trend

// Take adds the counts of a view.
func (t Trends) Take(v *store.View) { t.each(v, Trend.Take) }

// Keep is Take for a forecast from a recording: it drops no reading.
func (t Trends) Keep(v *store.View) { t.each(v, Trend.add) }

func (t Trends) each(v *store.View, add func(Trend, Reading) Trend) {
	for _, u := range v.Subnets {
		if u.Available != nil && u.AsOf != nil {
			t[u.ID] = add(t[u.ID], Reading{*u.AsOf, *u.Available})
		}
	}
}

// Values are those of a sparkline, oldest first.
func (t Trend) Values() []float64 {
	out := make([]float64, len(t))
	for i, r := range t {
		out[i] = float64(r.Free)
	}
	return out
}

// What a slope needs so that it means something.
const (
	leastReadings = 5
	leastSpan     = 10 * time.Minute
	leastFall     = 8   // addresses over the span
	leastFit      = 0.7 // share of the variance that a line explains
	longestLeft   = 7 * 24 * time.Hour
)

// Forecast is when a subnet runs out if it goes on as measured.
type Forecast struct {
	PerHour float64 // addresses; negative: fewer
	Over    time.Duration
	Left    time.Duration // 0: nothing can be said
}

// Project fits a line. It says nothing of few readings, of a short time, of a small
// change or of one that goes up and down.
func (t Trend) Project() Forecast {
	n := len(t)
	if n < 2 {
		return Forecast{}
	}
	f := Forecast{Over: t[n-1].At.Sub(t[0].At)}
	var sx, sy, sxx, sxy, syy float64
	for _, r := range t {
		x, y := r.At.Sub(t[0].At).Hours(), float64(r.Free)
		sx, sy, sxx, sxy, syy = sx+x, sy+y, sxx+x*x, sxy+x*y, syy+y*y
	}
	k := float64(n)
	dx, dy := k*sxx-sx*sx, k*syy-sy*sy
	if dx <= 0 || dy <= 0 {
		return f
	}
	cov := k*sxy - sx*sy
	f.PerHour = cov / dx
	fit := cov * cov / (dx * dy)
	fall := -f.PerHour * f.Over.Hours()
	if n < leastReadings || f.Over < leastSpan || fall < leastFall || fit < leastFit {
		return f
	}
	f.Left = f.atRate(t[n-1].Free)
	return f
}

// Words says how the free addresses go on, in one sentence; "" of fewer than two readings.
// A rate is never said without what follows of it: one that would empty the subnet within
// a day warns even where it is no forecast yet, with what it lacks; a slower one that
// means nothing yet is not said.
func (t Trend) Words() string {
	n := len(t)
	if n < 2 {
		return ""
	}
	f, free := t.Project(), t[n-1].Free
	readings := show.Plural(n, "reading", "readings")
	switch left := f.atRate(free); {
	case free <= 0:
		return f.Change() + " (" + readings + "): none left"
	case f.Left > 0:
		return f.Words() + " at " + f.Change()
	case math.Round(f.PerHour) >= 0:
		return f.Change() + " (" + readings + "): not running out"
	case left > 0 && left <= soon:
		lacks := " only"
		if n >= leastReadings && f.Over >= leastSpan {
			lacks = ", not steady"
		}
		return "at this rate ~" + show.Age(left) + " left (" + f.Change() + ", " + readings + lacks + ")"
	}
	return "measured for " + show.Age(f.Over) + " (" + readings + "): too little for a forecast"
}

// soon is how near an end is that even a rate of few readings warns of.
const soon = 24 * time.Hour

// atRate is how long so many addresses last; 0: forever, or longer than can be forecast.
func (f Forecast) atRate(free int) time.Duration {
	hours := float64(free) / -f.PerHour
	if f.PerHour >= 0 || hours > longestLeft.Hours() {
		return 0
	}
	return time.Duration(hours * float64(time.Hour))
}

// Words says a forecast in two words, "" when there is none.
func (f Forecast) Words() string {
	if f.Left <= 0 {
		return ""
	}
	return "~" + show.Age(f.Left) + " left"
}

// Change says the rate, and over how long it was measured.
func (f Forecast) Change() string { return rate(f.PerHour) + " over " + show.Age(f.Over) }

// FreeChange is Change where nothing beside it says of what it is.
func (f Forecast) FreeChange() string {
	return strings.Replace(rate(f.PerHour), "/h", " free/h", 1) + " over " + show.Age(f.Over)
}

// rate says a change of free addresses.
func rate(perHour float64) string {
	v := math.Round(perHour)
	if v == 0 {
		return "no change"
	}
	sign := "+"
	if v < 0 {
		sign = "-"
	}
	return sign + strconv.Itoa(int(min(math.Abs(v), 1e9))) + "/h"
}
