package app

import (
	"strings"
	"testing"
	"time"

	"cnictl/tui/source"
	"cnictl/tui/source/sourcetest"
	"cnictl/tui/theme"
)

// While the nodes cannot be watched every screen says so and why in one line, above what it
// knew last, which is greyed; both end with the problem.
func TestOutOfReachIsSaid(t *testing.T) {
	t.Parallel()
	fleet := sourcetest.New(50, 5)
	b := newBench(t, fleet, nil)
	const why = "API server 10.0.0.1:443 unreachable"
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
			for _, l := range strings.Split(b.View().Content, "\n")[2:] {
				for _, role := range []theme.Role{theme.Good, theme.Bad, theme.Warn, theme.BarUsed} {
					if strings.Contains(l, b.theme.On(role)) {
						t.Errorf("screen %s at %v: role %d is not greyed: %q", screen, size, role, l)
					}
				}
			}
			stats := b.src.stats
			stats.RetryAt = b.clock.Add(4 * time.Second)
			fleet.SetStats(stats)
			b.change()
			if line := strings.Split(colourless(b.View().Content), "\n")[1]; !strings.HasPrefix(line, " ! API server unreachable for 90s; retrying in 4s: ") {
				t.Errorf("screen %s at %v: %q", screen, size, line)
			}
			fleet.SetStats(source.Stats{Interval: 10 * time.Second})
			b.change()
			if strings.Contains(b.View().Content, why) {
				t.Errorf("screen %s at %v: it is back, and is said to be gone", screen, size)
			}
		}
	}
}
