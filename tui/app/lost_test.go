package app

import (
	"strings"
	"testing"
	"time"

	"cnictl/tui/source"
	"cnictl/tui/source/sourcetest"
)

// While the nodes cannot be followed every screen says so and why, above what it knew
// last; it goes by itself, and the pointer means the rows that it points at.
func TestOutOfReachIsSaid(t *testing.T) {
	t.Parallel()
	fleet := sourcetest.New(50, 5)
	b := newBench(t, fleet, nil)
	const why = "the API server 10.0.0.1:443 cannot be reached"
	for _, size := range [][2]int{{60, 15}, {80, 24}, {200, 60}} {
		b.resize(size[0], size[1])
		for _, screen := range []string{"1", "2", "3", "4", "5"} {
			fleet.SetStats(source.Stats{Interval: 10 * time.Second, Problem: why, ProblemAt: b.clock.Add(-90 * time.Second)})
			b.press(screen)
			b.change()
			lines := strings.Split(colourless(b.View().Content), "\n")
			if !strings.Contains(lines[1], "! for 90s: "+why) || len(lines) != size[1] {
				t.Errorf("screen %s at %v: %q, %d lines", screen, size, lines[1], len(lines))
			}
			fleet.SetStats(source.Stats{Interval: 10 * time.Second})
			b.change()
			if strings.Contains(b.View().Content, why) {
				t.Errorf("screen %s at %v: it is back, and is said to be gone", screen, size)
			}
		}
	}
}
