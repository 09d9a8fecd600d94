package figure

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Number is a figure that may be unknown.
type Number struct {
	Value float64
	Known bool
}

// Of returns a known figure.
func Of(v float64) Number { return Number{v, true} }

// Over returns the ratio of two figures, unknown if it is meaningless.
func (n Number) Over(m Number) Number {
	if !n.Known || !m.Known || m.Value == 0 {
		return Number{}
	}
	return Of(n.Value / m.Value)
}

// Times returns a share of a figure.
func (n Number) Times(share float64) Number { return Number{n.Value * share, n.Known} }

// String prints three digits, or all those before the point.
func (n Number) String() string {
	if !n.Known {
		return "–"
	}
	switch a := math.Abs(n.Value); {
	case n.Value == math.Trunc(n.Value), a >= 100:
		return fmt.Sprintf("%.0f", n.Value)
	case a >= 10:
		return fmt.Sprintf("%.1f", n.Value)
	}
	return fmt.Sprintf("%.2f", n.Value)
}

// Milliseconds converts a duration to milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Quantile returns a quantile of an unsorted list: 1 is the maximum. For an empty list it is 0.
func Quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
