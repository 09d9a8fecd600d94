package components

import (
	"strings"
	"testing"
	"time"

	"cnictl/tui/draw"
	"cnictl/tui/query"
)

// TestTableLimits: a column stretched by its text shrinks before another column is dropped, and
// never exceeds its limit.
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
	style := draw.Style{Theme: draw.PlainTheme()}
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

// TestTableWideOnlyAdds: the column of the order stays when others are dropped, wide or not, and
// the wide columns only use room that the others leave.
func TestTableWideOnlyAdds(t *testing.T) {
	t.Parallel()
	say := func(text string) func(string) string { return func(string) string { return text } }
	number := func(string) (float64, bool) { return 1, true }
	table := NewTable(TableOptions[string]{
		Columns: []query.Column[string]{
			{Name: "name", Header: "NAME", Text: func(s string) string { return s }},
			{Name: "zone", Header: "ZONE", Drop: 5, Wide: true, Text: say("eu-west-1a")},
			{Name: "cool", Header: "COOL", Drop: 8, Text: say("3"), Number: number},
			{Name: "via", Header: "VIA", Drop: 9, Wide: true, Text: say("port-forward")},
			{Name: "trend", Header: "TREND", Drop: 9, Text: say("up")},
			{Name: "state", Header: "STATE", Text: say("ok")},
		},
		ID: func(s string) string { return s },
	})
	table.SetRows([]string{"a"}, time.Unix(1, 0))
	style := draw.Style{Theme: draw.PlainTheme()}
	header := func(width int) string { return table.Lines(style, width, 3)[0] }
	for width := 20; width < 120; width++ {
		table.SetWide(false)
		narrow := strings.Fields(header(width))
		table.SetWide(true)
		wide := header(width)
		for _, name := range narrow {
			if !strings.Contains(wide, name) {
				t.Errorf("%d cells: %s goes when it is wide: %q", width, name, wide)
			}
		}
	}
	if got := header(100); !strings.Contains(got, "ZONE") || !strings.Contains(got, "VIA") {
		t.Errorf("wide adds nothing: %q", got)
	}
	for _, wide := range []bool{false, true} {
		table.SetWide(wide)
		for _, by := range []string{"cool", "via", "zone"} {
			if err := table.SetOrder(by); err != nil {
				t.Fatal(err)
			}
			for _, width := range []int{36, 60, 100} {
				if got := header(width); !strings.Contains(got, strings.ToUpper(by)+"^") && !strings.Contains(got, strings.ToUpper(by)+"▲") {
					t.Errorf("%d cells, wide %v, by %s: %q", width, wide, by, got)
				}
			}
		}
	}
}
