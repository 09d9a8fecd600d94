package subnets

import (
	"math"
	"time"

	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// slope draws the readings of a subnet's free addresses over time and, if they run out, the line to
// zero.
type slope struct {
	trend inventory.Trend
	left  time.Duration // from the last reading until none is free; 0 = unknown
}

// points returns the value of each cell, and the cell where the future begins. NaN is a gap.
func (s slope) points(width int) (values []float64, future int) {
	n := len(s.trend)
	first, last := s.trend[0], s.trend[n-1]
	past := last.At.Sub(first.At)
	future = width
	if s.left > 0 { // the past and the future have one scale, but each has a third at least
		share := past.Seconds() / (past + s.left).Seconds()
		future = int(math.Round(float64(width) * min(max(share, 1./3), 2./3)))
	}
	values = make([]float64, width)
	at := 0
	for x := range values {
		if x < future {
			to := first.At.Add(time.Duration(float64(past) * float64(x) / float64(max(future-1, 1))))
			for at+1 < n && !s.trend[at+1].At.After(to) {
				at++
			}
			values[x] = float64(s.trend[at].Free)
			continue
		}
		values[x] = float64(last.Free) * float64(width-1-x) / float64(max(width-future, 1))
	}
	return values, future
}

// lines draws the slope, with the ends of the axis at the left and the times below.
func (s slope) lines(style draw.Style, width, height int) []string {
	const least = 20
	if len(s.trend) < 2 || style.Linear || width < least || height < 2 {
		return nil
	}
	top := 1.
	for _, r := range s.trend {
		top = max(top, float64(r.Free))
	}
	_, top = draw.Axis(top)
	axis := max(draw.Width(show.Count(int(top))), 4)
	plot, rows := width-axis-2, height-1
	values, future := s.points(plot)
	lines := make([]string, 0, height)
	for y := range rows {
		label := map[int]string{0: show.Count(int(top)), rows - 1: "0"}[y]
		l := draw.NewLine(style, width).Add(draw.Faint, style.Fit(label, axis, true)).Add(draw.Border, style.Pick("┤", "|"))
		for x, v := range values {
			level := v/top*float64(rows) - float64(rows-1-y)
			switch {
			case x >= future:
				on := level > 0 && level <= 1 || y == rows-1 && v <= 0
				l.Add(draw.Warn, map[bool]string{true: style.Pick("•", "*"), false: " "}[on])
			case level >= 1:
				l.Add(draw.BarFree, style.Pick("█", "#"))
			case level > 0 || y == rows-1:
				l.Add(draw.BarFree, show.SparkCell(level, 1, style.ASCII))
			default:
				l.Gap(1)
			}
		}
		lines = append(lines, l.String())
	}
	first, last := s.trend[0].At, s.trend[len(s.trend)-1].At
	l := draw.NewLine(style, width).Gap(axis+1).Add(draw.Faint, "-"+human.Age(last.Sub(first)))
	l.To(min(axis+1+future-1, width-len("now"))).Add(draw.Faint, "now")
	if s.left > 0 {
		end := "none free in ~" + human.Age(s.left)
		l.To(max(width-draw.Width(end)-1, 0)).Add(draw.Warn, end)
	}
	return append(lines, l.String())
}
