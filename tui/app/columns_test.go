package app

import (
	"context"
	"strings"
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/tui/components"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// TestTablesFit: at every width, a table keeps the columns without which its rows are meaningless,
// and a wider terminal never drops a column.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	const findings = "the doctor's findings"
	for screen, must := range map[string][]string{
		"overview": {"NODE", "IP", "STATUS"},
		"trunks":   {"NODE", "STATE", "BRANCHES"},
		"subnets":  {"SUBNET", "ZONE", "FREE", "LEFT"},
		"enis":     {"NODE", "ENI", "FREE"},
		"doctor":   {"SEVERITY", "CODE", "WHERE"},
		findings:   {"SEVERITY", "CODE", "WHERE"},
	} {
		fleet := pagetest.NewSource(40, 12)
		before := map[string]bool{}
		for width := leastWidth; width <= 200; width++ {
			if width == components.SideBySide {
				clear(before) // side by side, panes have less room than stacked
			}
			x := newBench(t, fleet, func(o *Options) {
				if o.Screen.Screen = screen; screen == findings {
					o.Screen.Screen = "doctor"
					o.Examine = func(context.Context, pages.Examine) (document.DoctorReport, error) {
						return found(), nil
					}
				}
			})
			x.run(x.opening)
			x.resize(width, 40)
			x.change()
			header := ""
			for _, line := range strings.Split(x.View().Content, "\n") {
				if strings.Contains(line, must[0]) && strings.Contains(line, must[1]) {
					header = colourless(line)
					break
				}
			}
			header, _, _ = strings.Cut(header, "│")
			for _, name := range must {
				if !strings.Contains(header, name) {
					t.Errorf("%s at %d: no %s in %q", screen, width, name, header)
				}
			}
			now := map[string]bool{}
			for _, name := range strings.Fields(header) {
				now[strings.TrimRight(name, "▲▼")] = true
			}
			for name := range before {
				if !now[name] {
					t.Errorf("%s at %d: %s is gone, with less room it was there: %q", screen, width, name, header)
				}
			}
			before = now
		}
	}
}
