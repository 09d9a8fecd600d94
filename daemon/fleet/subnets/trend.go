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
type Reading = store.Reading

// Trend are the readings of one subnet, oldest first.
type Trend store.Readings

// TrendOf returns the readings of a subnet up to now.
func TrendOf(u store.SubnetUse) Trend {
	t := Trend(u.Readings)
	if n := len(t); u.Available != nil && u.AsOf != nil && (n == 0 || u.AsOf.After(t[n-1].At)) {
		t = append(t[:n:n], Reading{At: *u.AsOf, Free: *u.Available})
	}
	return t
}

// Joined returns the readings of several recordings, oldest first.
func Joined(parts ...Trend) (out Trend) {
	for _, t := range parts {
		for _, r := range t {
			if n := len(out); n == 0 || r.At.After(out[n-1].At) {
				out = append(out, r)
			}
		}
	}
	return out
}

// Values returns the values of a sparkline, oldest first.
func (t Trend) Values() []float64 {
	out := make([]float64, len(t))
	for i, r := range t {
		out[i] = float64(r.Free)
	}
	return out
}

// Minimum requirements for a meaningful slope.
const (
	leastReadings = 5
	leastSpan     = 10 * time.Minute
	leastFall     = 8   // addresses over the span
	leastFit      = 0.7 // share of the variance explained by the line
	longestLeft   = 7 * 24 * time.Hour
)

// Forecast is when a subnet runs out at the measured rate.
type Forecast struct {
	PerHour float64 // free addresses; negative if their number falls
	Over    time.Duration
	Left    time.Duration // 0 if unknown
}

// Project fits a line. It makes no forecast from few readings, a short time, a small change, or
// an unsteady one.
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

// Words describes the trend of the free addresses in one sentence; "" for fewer than two
// readings. It never gives a rate without its consequence: a rate that would empty the subnet
// within a day is a warning even if there is too little data for a forecast, and then says what
// is missing; a slower rate without a forecast is omitted.
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

// soon is how near the end must be for a warning from a rate with too little data.
const soon = 24 * time.Hour

// atRate is how long the given number of addresses lasts; 0 if forever, or longer than a forecast
// can look.
func (f Forecast) atRate(free int) time.Duration {
	hours := float64(free) / -f.PerHour
	if f.PerHour >= 0 || hours > longestLeft.Hours() {
		return 0
	}
	return time.Duration(hours * float64(time.Hour))
}

// Words is a forecast in two words, "" if there is none.
func (f Forecast) Words() string {
	if f.Left <= 0 {
		return ""
	}
	return "~" + show.Age(f.Left) + " left"
}

// Change is the rate, and the time over which it was measured.
func (f Forecast) Change() string { return rate(f.PerHour) + " over " + show.Age(f.Over) }

// FreeChange is Change with the word "free", for where the context does not say what changes.
func (f Forecast) FreeChange() string {
	return strings.Replace(rate(f.PerHour), "/h", " free/h", 1) + " over " + show.Age(f.Over)
}

// rate formats a rate of free addresses.
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
