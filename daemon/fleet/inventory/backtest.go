package inventory

import (
	"math"
	"slices"
	"time"
)

// Backtest is by how much forecasts of a number of free addresses would have been wrong, at one time
// ahead, and simpler methods beside them. Sums are in addresses.
type Backtest struct {
	Ahead  time.Duration
	Cases  int
	Within int     // cases between Low and High, which should be 80 %
	Missed float64 // sum of the differences between Likely and what then was

	LastValue float64 // of the last value instead
	Line      float64 // of the straight line that fits best
	LastWeek  float64 // of the value at the same time a week before
	Weeks     int     // cases for which there is one
}

// Mean is a mean error; nil without cases.
func Mean(sum float64, cases int) *float64 {
	if cases == 0 {
		return nil
	}
	sum /= float64(cases)
	return &sum
}

// HorizonsTested are the times ahead at which forecasts are tested.
var HorizonsTested = []time.Duration{6 * time.Hour, 24 * time.Hour, 72 * time.Hour}

const (
	aWeek     = 7 * 24 * time.Hour
	testEvery = 6 * time.Hour
	// fresh is how old the reading may be that says what then was.
	fresh = time.Hour
)

// Backtest forecasts from the beginning of the readings, again every six hours, and compares with the
// readings after that. If they cover ten days, each forecast has a week behind it.
func (t Trend) Backtest() []Backtest {
	out := make([]Backtest, len(HorizonsTested))
	for i, ahead := range HorizonsTested {
		out[i].Ahead = ahead
	}
	if len(t) == 0 {
		return out
	}
	from := LeastSpan
	if t[len(t)-1].At.Sub(t[0].At) >= aWeek+slices.Max(HorizonsTested)+testEvery {
		from = aWeek
	}
	next := t[0].At.Add(from)
	for i, r := range t {
		if r.At.Before(next) {
			continue
		}
		next = r.At.Add(testEvery)
		t.test(i+1, out)
	}
	return out
}

// test adds the errors of forecasts from the first readings.
func (t Trend) test(known int, into []Backtest) {
	past := t[:known]
	end := past[known-1]
	expected, ok := past.Expect(HorizonsTested...)
	if !ok {
		return
	}
	for i := range into {
		b := &into[i]
		at := end.At.Add(b.Ahead)
		is, ok := t.free(at)
		if !ok {
			continue
		}
		b.Cases++
		if expected[i].Low <= is && is <= expected[i].High {
			b.Within++
		}
		b.Missed += math.Abs(expected[i].Likely - is)
		b.LastValue += math.Abs(float64(end.Free) - is)
		b.Line += math.Abs(past.line(at) - is)
		if before, ok := past.free(at.Add(-aWeek)); ok {
			b.Weeks++
			b.LastWeek += math.Abs(before - is)
		}
	}
}

// free is the number of free addresses at a time by the newest reading; false if that is too old, or
// if no reading follows, so that the number at that time is unknown.
func (t Trend) free(at time.Time) (float64, bool) {
	for i := len(t) - 1; i >= 0; i-- {
		if !t[i].At.After(at) {
			return float64(t[i].Free), (i < len(t)-1 || t[i].At.Equal(at)) && at.Sub(t[i].At) <= fresh
		}
	}
	return 0, false
}

// line is the value at a time of the line that fits best; a subnet has no fewer than 0 addresses.
func (t Trend) line(at time.Time) float64 {
	var hours, free float64
	for _, r := range t {
		hours += r.At.Sub(t[0].At).Hours() / float64(len(t))
		free += float64(r.Free) / float64(len(t))
	}
	return max(free+t.slope()*(at.Sub(t[0].At).Hours()-hours), 0)
}
