package store

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/fleet/document"
)

// BenchmarkHold measures the maximum and median wait of a Put and a View while 150 samples a
// second arrive for 5,000 nodes and a view is taken 20 times a second: no frame waits longer
// than that.
func BenchmarkHold(b *testing.B) {
	const nodes, puts, views = 5000, 1500, 200
	s := New()
	for i := range nodes {
		s.PutAt(addressed(i, t0), t0)
	}
	samples := make([]document.NodeIPAM, puts)
	for i := range samples {
		samples[i] = addressed(i*3%nodes, after(i))
	}
	runtime.GC()
	for b.Loop() {
		var took [2][]time.Duration
		var both sync.WaitGroup
		for kind, x := range []struct {
			n     int
			every time.Duration
			do    func(i int)
		}{
			{puts, time.Second / 150, func(i int) { s.PutAt(samples[i], after(i)) }},
			{views, time.Second / 20, func(int) { s.View() }},
		} {
			both.Go(func() {
				tick := time.NewTicker(x.every)
				defer tick.Stop()
				for i := range x.n {
					<-tick.C
					begin := time.Now()
					x.do(i)
					took[kind] = append(took[kind], time.Since(begin))
				}
			})
		}
		both.Wait()
		for kind, name := range []string{"put", "view"} {
			slices.Sort(took[kind])
			b.ReportMetric(float64(took[kind][len(took[kind])/2].Microseconds()), name+"-p50-µs")
			b.ReportMetric(float64(took[kind][len(took[kind])*99/100].Microseconds()), name+"-p99-µs")
			b.ReportMetric(float64(took[kind][len(took[kind])-1].Microseconds()), name+"-most-µs")
		}
	}
}
