package inventory

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// histories generate subnets of several kinds.
var histories = map[string]func(r *rand.Rand, past, all int) []float64{
	"line with noise": func(r *rand.Rand, _, all int) (out []float64) {
		level, slope, noise := 2000+2000*r.Float64(), 2+20*r.Float64(), 5+40*r.Float64()
		for range all {
			level -= slope
			out = append(out, level+noise*r.NormFloat64())
		}
		return out
	},
	"random walk": func(r *rand.Rand, _, all int) (out []float64) {
		level, slope, sigma := 1000+2000*r.Float64(), 5+15*r.Float64(), 10+30*r.Float64()
		for range all {
			level += -slope + sigma*r.NormFloat64()
			out = append(out, level)
		}
		return out
	},
	"daily cycle that grows": func(r *rand.Rand, _, all int) (out []float64) {
		level, slope, amplitude, noise := 2500+2000*r.Float64(), 5+10*r.Float64(), 100+300*r.Float64(), 10+20*r.Float64()
		for i := range all {
			level += -slope + noise*r.NormFloat64()
			out = append(out, level+amplitude*math.Cos(2*math.Pi*float64(i)/24)+noise*r.NormFloat64())
		}
		return out
	},
	"deployments": func(r *rand.Rand, _, all int) (out []float64) {
		level, rate, size := 1500+2000*r.Float64(), .2+.6*r.Float64(), 20+60*r.Float64()
		for range all {
			if r.Float64() < rate {
				level -= size * (r.ExpFloat64() - .4) // some go
			}
			out = append(out, level)
		}
		return out
	},
	"around a line": func(r *rand.Rand, _, all int) (out []float64) {
		level, slope, sigma, keep, off := 2000+2000*r.Float64(), 4+15*r.Float64(), 10+30*r.Float64(), .5+.4*r.Float64(), 0.
		for range all {
			level -= slope
			off = keep*off + sigma*r.NormFloat64()
			out = append(out, level+off)
		}
		return out
	},
}

// TestRunsOut_Band: 75 to 85 % of 1,000 synthetic subnets run out within the 80 % band.
func TestRunsOut_Band(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	total, within := 0, 0
	for name, make := range histories {
		r := rand.New(rand.NewPCG(7, uint64(len(name))))
		hit, drawn := 0, 0
		for drawn < 200 {
			past := 25 + r.IntN(7*24)
			if name == "daily cycle that grows" {
				past = 73 + r.IntN(4*24)
			}
			values := make(r, past, past+30*24)
			var tr Trend
			for i, v := range values[:past] {
				tr = append(tr, Reading{At: start.Add(time.Duration(i) * time.Hour), Free: int(math.Round(v))})
			}
			if low := slices.Min(values[:past]); low < 1 {
				continue // it had already run out
			}
			drawn++
			f, ok := tr.RunsOut()
			if !ok {
				t.Fatalf("%s: no forecast of %d hours", name, past)
			}
			end := tr[past-1].At
			truth := time.Duration(math.MaxInt64)
			for i, v := range values[past:] {
				if int(math.Round(v)) <= 0 {
					truth = time.Duration(i+1) * time.Hour
					break
				}
			}
			after := func(at time.Time) time.Duration {
				if at.IsZero() {
					return math.MaxInt64
				}
				return at.Sub(end)
			}
			if horizon := Horizon(f.Over); truth > horizon {
				truth = math.MaxInt64
			}
			if after(f.Early) <= truth && truth <= after(f.Late) {
				hit++
			}
		}
		t.Logf("%-24s %3d of %d within the band", name, hit, drawn)
		total, within = total+drawn, within+hit
	}
	t.Logf("%d of %d within the band", within, total)
	if share := float64(within) / float64(total); share < .75 || share > .85 {
		t.Errorf("the band of 80 %% holds %.1f %%", 100*share)
	}
}

func TestRunsOut_Edges(t *testing.T) {
	t.Parallel()
	var steady, empty []int
	for range 48 {
		steady, empty = append(steady, 300), append(empty, 0)
	}
	if _, ok := falling(time.Hour, steady[:24]...).RunsOut(); ok {
		t.Error("23 hours are enough")
	}
	if f, ok := falling(time.Hour, steady[:25]...).RunsOut(); !ok || f.Share != 0 || !f.Early.IsZero() || f.PerHour != 0 {
		t.Errorf("a steady subnet: %+v, %v", f, ok)
	}
	tr := falling(time.Hour, empty...)
	if f, ok := tr.RunsOut(); !ok || f.Share != 1 || !f.Late.Equal(tr[47].At) {
		t.Errorf("a full subnet: %+v, %v", f, ok)
	}
	// Extreme counts from a hostile file, a century apart.
	if f, ok := falling(100*365*24*time.Hour, 1<<62, -1<<62, 7).RunsOut(); !ok || f.Share < 0 || f.Share > 1 {
		t.Errorf("absurd counts: %+v, %v", f, ok)
	}
}
