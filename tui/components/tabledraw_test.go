package components

import (
	"strings"
	"testing"
	"time"

	"cnictl/daemon/fleet/query"
	"cnictl/tui/theme"
)

// A filter takes letters of either size, and what it found stands out in the letters that
// are there.
func TestTable_FoundStandsOut(t *testing.T) {
	t.Parallel()
	style := Style{Theme: theme.New("dark", theme.Terminal{})}
	for _, c := range []struct{ row, filter, found string }{
		{"node NO IP left", "no ip", "no"},
		{"x NO-IP left", "no-ip", "NO-IP"},
		{"x no-ip left", "NO-IP", "no-ip"},
		{"x ÄRGER", "ärg", "ÄRG"},
		{"x Κόσμος ΚΌΣΜΕ", "κόσμε", "ΚΌΣΜΕ"},
		{"x plain", "!none", ""},
	} {
		table := NewTable(TableOptions[string]{
			Columns: []query.Column[string]{{Name: "name", Header: "NAME", Text: func(s string) string { return s }}},
			ID:      func(s string) string { return s },
		})
		table.SetRows([]string{"a first row, under the cursor: " + c.filter, c.row}, time.Unix(1, 0))
		if err := table.SetFilter(c.filter); err != nil {
			t.Fatal(err)
		}
		lines := table.Lines(style, 60, 3)
		got := ""
		if _, rest, ok := strings.Cut(lines[2], style.Theme.On(theme.Match)); ok {
			got, _, _ = strings.Cut(rest, style.Theme.Off(theme.Match))
		}
		if got != c.found {
			t.Errorf("%q in %q: %q stands out, want %q (%q)", c.filter, c.row, got, c.found, lines[2])
		}
	}
}

func FuzzFindFold(f *testing.F) {
	f.Add("x NO-IP", "no-ip")
	f.Add("İstanbul", "i")
	f.Add("\xff\xfe", "\xff")
	f.Fuzz(func(t *testing.T, text, word string) {
		lower := strings.ToLower(word)
		from, to, ok := findFold(text, lower)
		if from < 0 || to < from || to > len(text) {
			t.Fatalf("%q in %q: %d..%d", word, text, from, to)
		}
		if got := strings.ToLower(text[from:to]); ok && got != lower {
			t.Fatalf("%q in %q: found %q", word, text, got)
		}
	})
}

// The bar of the selected row goes from edge to edge, over cells that are drawn too.
func TestTable_SelectionIsWhole(t *testing.T) {
	t.Parallel()
	table := NewTable(TableOptions[string]{
		Columns: []query.Column[string]{
			{Name: "name", Header: "NAME", Text: func(s string) string { return s }},
			{Name: "trend", Header: "TREND", Text: func(string) string { return "" }},
			{Name: "state", Header: "STATE", Text: func(string) string { return "ok" }},
		},
		ID:    func(s string) string { return s },
		Drawn: map[string]int{"trend": 6},
		Draw: func(s Style, _, _ string, width int) string {
			return s.Paint(theme.BarUsed, Spark(s, width, 1, []float64{1}))
		},
	})
	table.SetRows([]string{"a"}, time.Unix(1, 0))
	for _, term := range []theme.Terminal{{}, {Colour: true}, {Colour: true, True: true}} {
		s := Style{Theme: theme.New(theme.Auto, term)}
		on, off := s.Theme.On(theme.Selected), s.Theme.Off(theme.Selected)
		row := table.Lines(s, 40, 2)[1]
		for _, piece := range strings.SplitAfter(row, off) {
			if piece != "" && !strings.HasPrefix(piece, on) {
				t.Errorf("%+v: %q of %q is not of the bar", term, piece, row)
			}
		}
	}
}
