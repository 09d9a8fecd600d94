package inventory

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/fleet/human"
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

// JoinTrends returns the readings of several sources, oldest first.
func JoinTrends(parts ...Trend) (out Trend) {
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b Reading) int { return a.At.Compare(b.At) })
	return slices.CompactFunc(all, func(a, b Reading) bool { return a.At.Equal(b.At) })
}

// Values returns the values of a sparkline, oldest first.
func (t Trend) Values() []float64 {
	out := make([]float64, len(t))
	for i, r := range t {
		out[i] = float64(r.Free)
	}
	return out
}

// A straight line reaches sixty times as far ahead as its counts go back, and a week at most. Counts that cover less than LeastLine
// give no forecast: pools fill within seconds while nodes start.
const (
	LeastLine   = 30 * time.Second
	aheadOfLine = 60
	longestLeft = 7 * 24 * time.Hour
)

// Forecast says when a subnet runs out of free addresses, and how sure that is. Commands and screens
// all show [Forecast.Words].
type Forecast struct {
	Free     int           // by the last reading
	Readings int           // that it is based on
	Over     time.Duration // from the first to the last
	PerHour  float64       // change of the free addresses

	Left  time.Duration // until it is as likely empty as not; 0 if it is empty, or not within Ahead
	Ahead time.Duration // how far the forecast looks

	// Rough is a straight line through less than a day of readings. Otherwise the true time is
	// between Early and Late in 80 % of all cases; 0 is later than Ahead.
	Rough       bool
	Early, Late time.Duration
	Share       float64 // of the simulated futures that run out within Ahead
}

// Project forecasts when the subnet runs out.
func (t Trend) Project() Forecast {
	n := len(t)
	if n == 0 {
		return Forecast{}
	}
	f := Forecast{Free: t[n-1].Free, Readings: n, Over: t[n-1].At.Sub(t[0].At), Rough: true}
	f.Ahead = aheadOfLine * min(f.Over, longestLeft/aheadOfLine)
	if out, ok := t.RunsOut(); ok {
		end := t[n-1].At
		until := func(at time.Time) time.Duration { return max(0, at.Sub(end)) }
		f.Rough, f.PerHour, f.Share, f.Ahead = false, out.PerHour, out.Share, Horizon(out.Over)
		f.Early, f.Left, f.Late = until(out.Early), until(out.Likely), until(out.Late)
		return f
	}
	if !f.Measured() {
		return f
	}
	f.PerHour = t.slope()
	if hours := float64(f.Free) / -f.PerHour; f.PerHour < 0 && f.Free > 0 && hours <= f.Ahead.Hours() {
		f.Left = time.Duration(hours * float64(time.Hour))
	}
	return f
}

// slope is the change per hour of the line that fits best.
func (t Trend) slope() float64 {
	var sx, sy, sxx, sxy float64
	for _, r := range t {
		x, y := r.At.Sub(t[0].At).Hours(), float64(r.Free)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	k := float64(len(t))
	if dx := k*sxx - sx*sx; dx > 0 {
		return (k*sxy - sx*sy) / dx
	}
	return 0
}

// Emptied returns when the last free address was taken, false if some are free or never were.
func (t Trend) Emptied() (time.Time, bool) {
	at := len(t)
	for at > 0 && t[at-1].Free <= 0 {
		at--
	}
	if at == 0 || at == len(t) {
		return time.Time{}, false
	}
	return t[at].At, true
}

// Known reports whether anything is known about the time left.
func (f Forecast) Known() bool { return f.Empty() || f.Measured() }

// Measured reports whether the change of the free addresses is known.
func (f Forecast) Measured() bool { return f.Readings > 1 && f.Over >= LeastLine }

// Empty reports that no address is left.
func (f Forecast) Empty() bool { return f.Readings > 0 && f.Free <= 0 }

// Falls reports that it is known when the subnet runs out, or that it has.
func (f Forecast) Falls() bool { return f.Empty() || f.Left > 0 }

// Seconds is the time left, for filters, orders and documents; false if it is not known, or beyond
// what the forecast looks at.
func (f Forecast) Seconds() (float64, bool) { return f.Left.Seconds(), f.Falls() }

// Words is the time left with its uncertainty, such as "~14h, 4 readings" or "~4d, 3d to 6d"; ""
// if nothing is known.
func (f Forecast) Words() string {
	switch {
	case !f.Known():
		return ""
	case f.Empty():
		return "none left"
	case f.Left > 0:
		return "~" + about(f.Left) + ", " + f.unsure()
	case f.Rough && math.Round(f.PerHour) >= 0:
		return "not falling, " + f.unsure()
	case f.Rough, f.Early == 0:
		return ">" + about(f.Ahead) + ", " + f.unsure()
	}
	return ">" + about(f.Ahead) + ", " + about(f.Early) + " at worst"
}

// unsure says how uncertain the time is.
func (f Forecast) unsure() string {
	in := about
	if f.Left >= manyDays {
		in = days
	}
	switch {
	case f.Rough || f.Early == 0:
		return human.Plural(f.Readings, "reading", "readings")
	case f.Late == 0:
		return in(f.Early) + " to >" + days(f.Ahead)
	}
	return in(f.Early) + " to " + in(f.Late)
}

// manyDays is the time from which on days are shown.
const manyDays = 4 * 24 * time.Hour

// about rounds a time to the precision of a forecast.
func about(d time.Duration) string {
	switch {
	case d >= manyDays:
		return days(d)
	case d >= 3*time.Hour:
		return strconv.Itoa(int(math.Round(d.Hours()))) + "h"
	}
	return human.Age(d)
}

func days(d time.Duration) string { return strconv.Itoa(int(math.Round(d.Hours()/24))) + "d" }

// Change is the rate, and the time over which it was measured.
func (f Forecast) Change() string { return rate(f.PerHour) + " over " + human.Age(f.Over) }

// FreeChange is Change with the word "free", for where the context does not say what changes.
func (f Forecast) FreeChange() string {
	return strings.Replace(rate(f.PerHour), "/h", " free/h", 1) + " over " + human.Age(f.Over)
}

// Words describes the trend of the free addresses in one sentence: the time left, and how it was
// measured; "" if nothing is known.
func (t Trend) Words() string {
	f := t.Project()
	words := f.Words()
	if words == "" || !f.Measured() {
		return words
	}
	how := f.Change()
	if !f.Rough {
		how += ", " + human.Plural(f.Readings, "reading", "readings")
	}
	return words + " (" + how + ")"
}

// Subnet is a subnet with its trend, and the time that ages are relative to.
type Subnet struct {
	store.SubnetUse
	Trend    Trend
	Forecast Forecast // of Trend
	Now      time.Time
}

// Forecasts remembers the forecasts of subnets, which take milliseconds, until there are new
// readings.
type Forecasts map[string]remembered

type remembered struct {
	readings int
	last     time.Time
	forecast Forecast
}

// Subnet returns the row of a subnet.
func (known Forecasts) Subnet(u store.SubnetUse, now time.Time) *Subnet {
	t := TrendOf(u)
	if len(t) == 0 {
		return &Subnet{SubnetUse: u, Now: now}
	}
	before, last := known[u.ID], t[len(t)-1].At
	if before.readings != len(t) || !before.last.Equal(last) {
		before = remembered{len(t), last, t.Project()}
		known[u.ID] = before
	}
	return &Subnet{u, t, before.forecast, now}
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
