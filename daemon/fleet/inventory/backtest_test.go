package inventory

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// hourly returns hourly readings that begin in some hour of the week.
func hourly(begin int, free []float64) (t Trend) {
	for i, v := range free {
		t = append(t, Reading{At: monday.Add(time.Duration(begin+i) * time.Hour), Free: int(v)})
	}
	return t
}

// TestExpect_Kinds: over all kinds of subnets, the mean error of forecasts 6, 24 and 72 hours ahead, from
// 8 to 14 days of readings, is less than that of the last value, of a straight line and of the same time
// a week before; and 75 to 85 % of what then was is in the band of 80 %.
func TestExpect_Kinds(t *testing.T) {
	t.Parallel()
	const each = 60
	t.Logf("mean error in addresses   %9s %10s %10s %10s %8s", "forecast", "last value", "line", "last week", "in band")
	show := func(name string, b Backtest) {
		n := float64(b.Cases)
		t.Logf("%-24s %10.1f %10.1f %10.1f %10.1f %7.0f%%", name, b.Missed/n, b.LastValue/n, b.Line/n, b.LastWeek/n, 100*float64(b.Within)/n)
	}
	all := Backtest{}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		r := rand.New(rand.NewPCG(31, uint64(len(kind))))
		sum := Backtest{}
		for range each {
			past, begin := 8*24+r.IntN(6*24+1), r.IntN(week)
			tr := hourly(begin, kinds[kind](r, begin, past+72))
			tested := make([]Backtest, len(HorizonsTested))
			for i, ahead := range HorizonsTested {
				tested[i].Ahead = ahead
			}
			tr.test(past, tested)
			for _, b := range tested {
				if b.Cases != 1 || b.Weeks != 1 {
					t.Fatalf("%s: %+v", kind, b)
				}
				for _, into := range []*Backtest{&sum, &all} {
					into.Cases, into.Within = into.Cases+b.Cases, into.Within+b.Within
					into.Missed, into.LastValue = into.Missed+b.Missed, into.LastValue+b.LastValue
					into.Line, into.LastWeek = into.Line+b.Line, into.LastWeek+b.LastWeek
				}
			}
		}
		show(kind, sum)
	}
	show("all", all)
	if all.Missed >= min(all.LastValue, all.Line, all.LastWeek) {
		t.Errorf("the forecast is not the best: %+v", all)
	}
	if share := float64(all.Within) / float64(all.Cases); share < .75 || share > .85 {
		t.Errorf("the band of 80 %% holds %.1f %%", 100*share)
	}
}

// TestExpect_Same: the same readings have the same forecast, at most the free addresses are none.
func TestExpect_Same(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	tr := hourly(0, kinds["linear drain"](r, 0, 14*24))
	one, ok := tr.Expect(HorizonsTested...)
	two, _ := tr.Expect(HorizonsTested...)
	if !ok || !slices.Equal(one, two) {
		t.Errorf("%v, %v", one, two)
	}
	if _, ok := tr[:20].Expect(time.Hour); ok {
		t.Error("20 hours are enough")
	}
	far, _ := tr.Expect(1000 * 24 * time.Hour)
	if far[0] != (Expected{}) {
		t.Errorf("in three years: %+v", far[0])
	}
}

// TestBacktest: forecasts begin once there is a day, or a week if a test remains then; times without
// a count are not compared.
func TestBacktest(t *testing.T) {
	t.Parallel()
	steady := slices.Repeat([]float64{300}, 14*24+1)
	for hours, want := range map[int][3]int{
		0: {}, 24: {}, 25: {0, 0, 0}, 31: {1, 0, 0}, 49: {4, 1, 0}, 14*24 + 1: {28, 25, 17},
	} {
		for i, b := range hourly(0, steady[:hours]).Backtest() {
			if b.Cases != want[i] || b.Within != want[i] || b.Missed+b.LastValue+b.Line+b.LastWeek > 1e-6 || hours > 8*24 && b.Weeks != b.Cases {
				t.Errorf("%d hours: %+v, want %d cases", hours, b, want[i])
			}
		}
	}
	gap := hourly(0, steady[:49])
	gap = append(gap[:30:30], gap[40:]...) // from 30 to 40
	for _, b := range gap.Backtest()[:1] {
		if b.Cases != 2 { // 24 and 40 say something of 30 and 46
			t.Errorf("with a gap: %+v", b)
		}
	}
}

func BenchmarkRunsOut(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	tr := hourly(0, kinds["growth and daily wave"](r, 0, 14*24))
	for b.Loop() {
		if _, ok := tr.RunsOut(); !ok {
			b.Fatal("no forecast")
		}
	}
}
