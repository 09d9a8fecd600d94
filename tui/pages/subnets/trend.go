package subnets

import (
	"math"
	"strconv"
	"time"

	"cnictl/daemon/fleet/show"
)

// reading is what EC2 told of a subnet's free addresses at one time.
type reading struct {
	At   time.Time
	Free int
}

// keep bounds the readings of one subnet.
const keep = 120

// trend are the readings of one subnet since the screen was opened, oldest first.
type trend []reading

// take adds a reading that is newer than the last.
func (t trend) take(r reading) trend {
	if n := len(t); n > 0 && !r.At.After(t[n-1].At) {
		return t
	}
	t = append(t, r)
	if len(t) > keep {
		t = append(trend(nil), t[len(t)-keep:]...)
	}
	return t
}

// values for a sparkline, oldest first.
func (t trend) values() []float64 {
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

// forecast is when a subnet runs out if it goes on as measured.
type forecast struct {
	PerHour float64 // addresses; negative: fewer
	Over    time.Duration
	Left    time.Duration // 0: nothing can be said
}

// project fits a line. It says nothing of few readings, of a short time, of a small
// change or of one that goes up and down.
func (t trend) project() forecast {
	n := len(t)
	if n < 2 {
		return forecast{}
	}
	f := forecast{Over: t[n-1].At.Sub(t[0].At)}
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
	hours := float64(t[n-1].Free) / -f.PerHour
	if hours*float64(time.Hour) <= float64(longestLeft) {
		f.Left = time.Duration(hours * float64(time.Hour))
	}
	return f
}

// left says a forecast in two words, "" when there is none.
func (f forecast) left() string {
	if f.Left <= 0 {
		return ""
	}
	return "~" + show.Age(f.Left) + " left"
}

// words says what was measured.
func (t trend) words() string {
	f := t.project()
	switch {
	case len(t) < 2:
		return "measured from now on: EC2's count is read every 10 minutes and before an ENI is made"
	case f.Left > 0:
		return f.left() + " at " + rate(f.PerHour) + ", measured over " + show.Age(f.Over)
	}
	return rate(f.PerHour) + " over " + show.Age(f.Over) + " (" + show.Plural(len(t), "reading", "readings") + "): too little for a forecast"
}

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
