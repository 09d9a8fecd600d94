package store

import "time"

// Reading is what EC2 told of a subnet's free addresses at one time.
type Reading struct {
	At   time.Time
	Free int
}

// ReadingsLen bounds the readings of one subnet.
const ReadingsLen = 120

// Readings are those of one subnet, oldest first.
type Readings []Reading

// Take adds what a view says of the subnet where that is newer than the last.
func (r Readings) Take(u SubnetUse) Readings {
	if u.Available == nil || u.AsOf == nil || len(r) > 0 && !u.AsOf.After(r[len(r)-1].At) {
		return r
	}
	r = append(r, Reading{*u.AsOf, *u.Available})
	if len(r) > ReadingsLen {
		r = append(Readings(nil), r[len(r)-ReadingsLen:]...)
	}
	return r
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
	PerHour float64       // addresses; negative: fewer
	Over    time.Duration // between the first and the last reading
	Left    time.Duration // from the last reading on; 0: nothing can be said
}

// Forecast fits a line. It says nothing of few readings, of a short time, of a small
// change or of one that goes up and down.
func (r Readings) Forecast() Forecast {
	n := len(r)
	if n < 2 {
		return Forecast{}
	}
	f := Forecast{Over: r[n-1].At.Sub(r[0].At)}
	var sx, sy, sxx, sxy, syy float64
	for _, one := range r {
		x, y := one.At.Sub(r[0].At).Hours(), float64(one.Free)
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
	hours := float64(r[n-1].Free) / -f.PerHour
	if hours*float64(time.Hour) <= float64(longestLeft) {
		f.Left = time.Duration(hours * float64(time.Hour))
	}
	return f
}
