package components

import (
	"strings"
	"testing"
	"time"

	"cnictl/daemon/fleet/query"
	"cnictl/tui/theme"
)

// A column that a text stretches gives way before another column goes, and never takes
// more than its limit.
func TestTableLimits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 40)
	table := NewTable(TableOptions[string]{
		Columns: []query.Column[string]{
			{Name: "name", Header: "NAME", Text: func(s string) string { return s }},
			{Name: "type", Header: "TYPE", Drop: 2, Text: func(string) string { return long }},
			{Name: "trend", Header: "TREND", Drop: 1, Text: func(string) string { return "up" }},
			{Name: "state", Header: "STATE", Text: func(string) string { return "ok" }},
		},
		ID:     func(s string) string { return s },
		Limits: map[string]Limit{"type": {Most: 20, Narrow: 8}},
	})
	table.SetRows([]string{"a"}, time.Unix(1, 0))
	style := Style{Theme: theme.Plain()}
	for _, c := range []struct {
		width, shown int
		trend        bool
	}{{100, 20, true}, {33, 8, true}, {26, 0, true}} {
		lines := table.Lines(style, c.width, 3)
		if got := strings.Contains(lines[0], "TREND"); got != c.trend {
			t.Errorf("%d cells: the trend is shown: %v\n%s", c.width, got, strings.Join(lines, "\n"))
		}
		if got := strings.Count(lines[1], "x") + strings.Count(lines[1], "…"); got != c.shown {
			t.Errorf("%d cells: %d of the type, want %d\n%s", c.width, got, c.shown, strings.Join(lines, "\n"))
		}
	}
}
