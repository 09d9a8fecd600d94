package node

import (
	"math"
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
)

// chart draws the used, cooling and free addresses over time, stacked to those held, with
// the targets as they were.
func chart(s draw.Style, sheet *draw.Sheet, n *store.Node, now time.Time, height int) {
	const least, most = 7, 18
	if len(n.History) < 2 {
		sheet.Blank()
		sheet.Add(draw.T(draw.Faint, "The chart needs more samples."))
		return
	}
	c := poolChart(n, now, sheet.Width())
	c = poolChart(n, now, c.Plot(sheet.Width()))
	sheet.Blank()
	lines := c.Lines(s, sheet.Width(), min(max(height*2/5, least), most))
	for blank := draw.Blank(sheet.Width()); len(lines) > 0 && lines[len(lines)-1] == blank; { // rows that the axis leaves
		lines = lines[:len(lines)-1]
	}
	sheet.Drawn(lines...)
}

// spans are the time ranges of the chart. The shortest that holds all samples is used, so
// that the chart of a new screen is not mostly empty.
var spans = []time.Duration{3 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute}

func spanOf(h store.History, now time.Time) time.Duration {
	for _, span := range spans {
		if now.Sub(h[0].At()) <= span {
			return span
		}
	}
	return spans[len(spans)-1]
}

// poolChart spreads the history of a node's pool over cells of equal time up to now. A cell
// in which the node was not read is a gap.
func poolChart(n *store.Node, now time.Time, cells int) draw.Chart {
	span := spanOf(n.History, now)
	points := n.History.Series(now.Add(-span), now, cells)
	series := func(value func(store.Point) float64) []float64 {
		out := make([]float64, len(points))
		for i, p := range points {
			if out[i] = math.NaN(); !p.Gap() {
				out[i] = value(p)
			}
		}
		return out
	}
	c := draw.Chart{Areas: []draw.Area{
		{Name: "used", Role: draw.BarUsed, Values: series(func(p store.Point) float64 { return float64(p.Assigned) })},
		{Name: "cooling", Role: draw.BarCooling, Values: series(func(p store.Point) float64 { return float64(max(0, p.Cooling)) })},
		{Name: "free", Role: draw.BarFree, Values: series(func(p store.Point) float64 { return float64(p.Free) })},
	}, Span: "last " + human.Age(span)}
	level := func(name string, role draw.Role, value func(store.Point) float64) {
		values := series(value)
		if newest := last(values); !math.IsNaN(newest) {
			c.Levels = append(c.Levels, draw.Level{Name: name, Role: role, Value: newest, Values: values})
		}
	}
	level("MINIMUM", draw.Info, func(p store.Point) float64 { return positive(int(p.MinimumIP)) })
	level("WARM_IP", draw.Good, func(p store.Point) float64 { return float64(p.Taken()) + positive(int(p.WarmIP)) })
	if name, spare := spareOf(*n.Summary); spare > 0 {
		level(name, draw.Good, func(p store.Point) float64 {
			if p.WarmIP > 0 || p.MinimumIP > 0 {
				return math.NaN() // targets in addresses take precedence
			}
			return float64(p.Taken() + spare)
		})
	}
	// A limit far above the pool would flatten the chart.
	if v := plainMaxPods(n); v > 0 && v <= 2*max(n.Held, 1) {
		c.Levels = append(c.Levels, draw.Level{Name: "max-pods", Role: draw.Warn, Value: float64(v)})
	}
	return c
}

// spareOf returns how many addresses beyond those in use the target in ENIs requires, 0 if
// that target is not in effect or the number is unknown. A target in prefixes is not a
// count of addresses.
func spareOf(s introspect.Summary) (name string, addresses int) {
	for _, t := range targetsOf(s) {
		if t.Spare > 0 {
			return t.Short, t.Spare
		}
	}
	return "", 0
}

// last returns the newest known value, NaN if none.
func last(values []float64) float64 {
	for _, v := range slices.Backward(values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// positive returns a target, or NaN if it is not set.
func positive(v int) float64 {
	if v <= 0 {
		return math.NaN()
	}
	return float64(v)
}
