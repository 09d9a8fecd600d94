package live

import (
	"math"
	"time"
)

// histogram counts durations in buckets, four to a doubling, starting at 100 µs. Old counts
// fade, so it shows recent times.
type histogram struct {
	buckets [96]uint32
	total   uint32
}

const (
	histogramBase   = 100 * time.Microsecond
	histogramSteps  = 4.0     // per doubling
	histogramForget = 1 << 14 // all counts are halved when total reaches this
)

func (h *histogram) add(d time.Duration) {
	i := 0
	if d > histogramBase {
		i = min(int(math.Ceil(math.Log2(float64(d)/float64(histogramBase))*histogramSteps)), len(h.buckets)-1)
	}
	h.buckets[i]++
	if h.total++; h.total < histogramForget {
		return
	}
	h.total = 0
	for i := range h.buckets {
		h.buckets[i] /= 2
		h.total += h.buckets[i]
	}
}

// quantile returns the upper bound of the bucket that contains q; 0 if nothing was counted.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := uint32(math.Ceil(q * float64(h.total)))
	var seen uint32
	for i, n := range h.buckets {
		if seen += n; seen >= rank {
			return time.Duration(float64(histogramBase) * math.Exp2(float64(i)/histogramSteps)).Round(time.Microsecond)
		}
	}
	return 0
}

// meter measures what one sample costs in processor time.
type meter struct {
	at      time.Time
	cpu     time.Duration
	samples uint64
}

// A cost needs at least this much data: with fewer samples, other work would dominate it.
const (
	meterEvery   = time.Second
	meterAtLeast = 20 // samples
)

func (m *meter) read(now time.Time, cpu time.Duration, samples uint64) (one time.Duration, ok bool) {
	if !m.at.IsZero() && now.Sub(m.at) < meterEvery {
		return 0, false
	}
	if n := samples - m.samples; !m.at.IsZero() && n >= meterAtLeast && cpu > m.cpu {
		one, ok = (cpu-m.cpu)/time.Duration(n), true
	}
	m.at, m.cpu, m.samples = now, cpu, samples
	return one, ok
}
