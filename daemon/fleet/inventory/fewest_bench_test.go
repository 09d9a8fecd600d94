package inventory

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkFewest is a /19 with 500 nodes. gap is how many nodes more the set has than is proven to be
// necessary.
func BenchmarkFewest(b *testing.B) {
	for name, x := range map[string]struct {
		most     int
		prefixes float64
		want     int
	}{
		"prefixes/10":    {1, 1, 10},
		"prefixes/100":   {1, 1, 100},
		"half/10":        {8, .5, 10},
		"half/200":       {8, .5, 200},
		"fragmented/1":   {15, 0, 1},
		"fragmented/4":   {15, 0, 4},
		"fragmented/16":  {15, 0, 16},
		"fragmented/100": {15, 0, 100},
	} {
		b.Run(name, func(b *testing.B) {
			holders := drawn(rand.New(rand.NewPCG(31, 4)), 512, 500, x.most, x.prefixes)
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
				set, least := Fewest(ctx, holders, x.want)
				cancel()
				b.ReportMetric(float64(len(set)), "nodes")
				b.ReportMetric(float64(len(set)-least), "gap")
			}
		})
	}
}
