package whatif

import (
	"maps"
	"slices"
	"time"
)

// Spread is the distribution of a number over time.
type Spread struct {
	Avg      float64
	P95, Max int // 95 % of the time it was at most P95
}

// meter follows a number over time.
type meter struct {
	value int
	since time.Time
	spent map[int]time.Duration // by value
	total time.Duration
	sum   float64 // value × seconds
}

func (m *meter) begin(at time.Time) { m.since, m.spent = at, map[int]time.Duration{} }

func (m *meter) add(at time.Time, change int) {
	if change == 0 {
		return
	}
	m.spend(at)
	m.value += change
}

func (m *meter) spend(at time.Time) {
	d := at.Sub(m.since)
	m.since = at
	if d <= 0 {
		return
	}
	m.spent[m.value] += d
	m.total += d
	m.sum += float64(m.value) * d.Seconds()
}

func (m *meter) spread(at time.Time) Spread {
	m.spend(at)
	if m.total == 0 {
		return Spread{float64(m.value), m.value, m.value}
	}
	values := slices.Sorted(maps.Keys(m.spent))
	s := Spread{Avg: m.sum / m.total.Seconds(), Max: values[len(values)-1]}
	left := m.total / 20
	for i := len(values) - 1; i >= 0; i-- {
		if left -= m.spent[values[i]]; left < 0 {
			s.P95 = values[i]
			break
		}
	}
	return s
}
