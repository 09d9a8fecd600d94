package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// outage is what a source reports while the API server is unreachable.
func outage(b *bench) watch.Stats {
	return watch.Stats{
		Interval: 10 * time.Second, Problem: "API server 10.0.0.1:443 unreachable: connection refused",
		ProblemAt: b.clock.Add(-130 * time.Second), RetryAt: b.clock.Add(8 * time.Second),
	}
}

// TestOutage_GreysValues: while the API server is unreachable, every screen says so in one line
// above the last values. No node is red; everything is greyed and, in the list, shows its age.
// The line and the grey end with the outage.
func TestOutage_GreysValues(t *testing.T) {
	t.Parallel()
	fleet := pagetest.NewSource(50, 5)
	b := newBench(t, fleet, nil)
	fleet.Wait(130 * time.Second)
	b.clock = fleet.Now()
	for _, size := range [][2]int{{60, 15}, {80, 24}, {200, 60}} {
		b.resize(size[0], size[1])
		for _, screen := range []string{"1", "2", "3", "4", "5"} {
			fleet.SetStats(outage(b))
			b.press(screen)
			b.change()
			lines := strings.Split(b.View().Content, "\n")
			retrying := "; retrying in 8s"
			if size[0] < 80 {
				retrying = ""
			}
			if strings.TrimRight(colourless(lines[1]), " ") != " ! API server unreachable for 2m10s"+retrying+": connection refused" || len(lines) != size[1] {
				t.Errorf("screen %s at %v: %q, %d lines", screen, size, lines[1], len(lines))
			}
			for i, l := range lines {
				for _, role := range []draw.Role{draw.Good, draw.Bad, draw.Warn, draw.BarUsed} {
					if i != 1 && strings.Contains(l, b.theme.On(role)) {
						t.Errorf("screen %s at %v: role %d is not greyed: %q", screen, size, role, l)
					}
				}
			}
			for _, l := range lines[2:] {
				if l = colourless(l); screen == "1" && strings.HasSuffix(strings.TrimSpace(l), " ok") && strings.HasPrefix(l, "  ip-") {
					t.Errorf("a row without its age at %v: %q", size, l)
				}
			}
			fleet.SetStats(watch.Stats{Interval: 10 * time.Second})
			b.change()
			if text := b.View().Content; strings.Contains(text, "unreachable for") {
				t.Errorf("screen %s at %v: the outage is over, and is not", screen, size)
			}
		}
	}
}

// TestOutage_Reasons: the reason of an outage takes the place of the next try. A node that was not
// opened before says why there is nothing to see, whether or not it was read.
func TestOutage_Reasons(t *testing.T) {
	t.Parallel()
	fleet := pagetest.NewSource(50, 5)
	b := newBench(t, fleet, nil)
	b.resize(80, 24)
	stats := outage(b)
	stats.Problem = "API server 10.0.0.1:443 unreachable: no answer within the limit of 3s"
	fleet.SetStats(stats)
	b.change()
	b.sees(t, " ! API server unreachable for 2m10s: no answer within the limit of 3s ")
	b.press("enter")
	b.sees(t, "Its addresses: not available: API server unreachable")
	q := b.reads[0]
	b.send(pages.Loaded{ID: q.ID, Want: q.Want, Detail: watch.Detail{Errors: map[watch.Want]document.NodeError{
		q.Want: {Reason: introspect.ReasonTransport, Message: stats.Problem},
	}}})
	b.sees(t, "Its addresses: not available: API server unreachable")
}

func TestOutage_Frames(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		for name, profile := range map[string]colorprofile.Profile{"plain": colorprofile.NoTTY, "dark": colorprofile.ANSI} {
			t.Run(fmt.Sprintf("%dx%d-%s", size[0], size[1], name), func(t *testing.T) {
				t.Parallel()
				fleet := pagetest.NewSource(50, 5)
				b := newBench(t, fleet, nil)
				fleet.Wait(130 * time.Second)
				b.clock = fleet.Now()
				b.resize(size[0], size[1])
				fleet.SetStats(outage(b))
				b.change()
				picture(t, b, size, profile)
			})
		}
	}
}

// TestBanner_WatchFails: if the list of nodes cannot be watched, the known nodes are still read
// and not greyed.
func TestBanner_WatchFails(t *testing.T) {
	t.Parallel()
	fleet := pagetest.NewSource(50, 5)
	b := newBench(t, fleet, nil)
	b.resize(120, 40)
	fleet.SetStats(watch.Stats{Interval: 10 * time.Second, Problem: "cannot watch nodes: forbidden", ProblemAt: b.clock.Add(-90 * time.Second)})
	b.change()
	b.sees(t, " ! cannot watch nodes: forbidden (for 90s)")
	b.lacks(t, "last seen", " old ")
	if !strings.Contains(b.View().Content, b.theme.On(draw.Good)) {
		t.Error("nodes that are read are greyed")
	}
}
