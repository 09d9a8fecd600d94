package app

import (
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"

	tea "charm.land/bubbletea/v2"

	"cnictl/tui/pages/pagetest"
)

// BenchmarkChange measures a change of 5,000 nodes up to the picture: filter, order and the
// root's View at 200x60. eks-node-viewer takes 102 ms for such a frame. Rows in the order of the
// first screen, rows filtered and sorted by the user, and rows that stay in place, as they were sorted
// a moment ago.
func BenchmarkChange(b *testing.B) {
	for _, c := range []struct {
		name   string
		filter string
		apart  time.Duration // between two changes
	}{{"all", "", 3 * time.Second}, {"filtered", "eu-west !t3.medium warm>1", 3 * time.Second}, {"in place", "", time.Millisecond}} {
		b.Run(c.name, func(b *testing.B) {
			fleet := pagetest.NewSource(5000, 90)
			x := newBench(b, fleet, nil)
			x.send(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
			x.resize(200, 60)
			x.change()
			if c.filter != "" {
				x.press("/")
				x.typed(c.filter)
				x.press("enter", "s", "i")
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				fleet.Step(100)
				fleet.Wait(c.apart)
				x.clock = x.clock.Add(c.apart)
				view := fleet.View()
				b.StartTimer()
				x.Update(changed{view, x.src.stats})
				if x.View().Content == "" {
					b.Fatal("no picture")
				}
			}
			b.ReportMetric(102, "eks-node-viewer-ms/frame")
		})
	}
}

// BenchmarkKey measures a key press up to the picture.
func BenchmarkKey(b *testing.B) {
	fleet := pagetest.NewSource(5000, 90)
	x := newBench(b, fleet, nil)
	x.resize(200, 60)
	x.change()
	b.ReportAllocs()
	down, up := press("down"), press("up")
	for i := 0; b.Loop(); i++ {
		msg := down
		if i/200%2 == 1 {
			msg = up
		}
		x.Update(msg)
		if x.View().Content == "" {
			b.Fatal("no picture")
		}
	}
}
