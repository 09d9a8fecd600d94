package subnets

import (
	"math"
	"strconv"

	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
)

// free are the readings' values, oldest first.
func free(all store.Readings) []float64 {
	out := make([]float64, len(all))
	for i, r := range all {
		out[i] = float64(r.Free)
	}
	return out
}

// left says a forecast in two words, "" when there is none.
func left(f store.Forecast) string {
	if f.Left <= 0 {
		return ""
	}
	return "~" + show.Age(f.Left) + " left"
}

// words says what was measured.
func words(t store.Readings) string {
	f := t.Forecast()
	switch {
	case len(t) < 2:
		return "measured from now on: EC2's count is read every 10 minutes and before an ENI is made"
	case f.Left > 0:
		return left(f) + " at " + rate(f.PerHour) + ", measured over " + show.Age(f.Over)
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
