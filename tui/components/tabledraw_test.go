package components

import (
	"strings"
	"testing"
	"time"

	"cnictl/tui/draw"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// TestTable_FoundStandsOut: a filter ignores case, and its matches are highlighted as they
// are spelled in the row.
func TestTable_FoundStandsOut(t *testing.T) {
	t.Parallel()
	style := draw.Style{Theme: draw.NewTheme("dark", draw.Terminal{})}
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
		if _, rest, ok := strings.Cut(lines[2], style.Theme.On(draw.Match)); ok {
			got, _, _ = strings.Cut(rest, style.Theme.Off(draw.Match))
		}
		if got != c.found {
			t.Errorf("%q in %q: %q highlighted, want %q (%q)", c.filter, c.row, got, c.found, lines[2])
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

// TestTable_SelectedRow: the row under the cursor keeps its bars and colours, on a tint from edge to
// edge. The table of a pane without keyboard focus shows no cursor.
func TestTable_SelectedRow(t *testing.T) {
	t.Parallel()
	table := NewTable(TableOptions[string]{
		Columns: []query.Column[string]{
			{Name: "name", Header: "NAME", Text: func(s string) string { return s }},
			{Name: "trend", Header: "TREND", Text: func(string) string { return "" }},
			{Name: "state", Header: "STATE", Text: func(string) string { return "ok" }},
		},
		ID:    func(s string) string { return s },
		Role:  func(string, string) draw.Role { return draw.Bad },
		Drawn: map[string]int{"trend": 6},
		Draw: func(s draw.Style, _, _ string, width int) string {
			return s.Paint(draw.BarUsed, show.Spark([]float64{1}, width, 1, s.ASCII))
		},
	})
	table.SetRows([]string{"a"}, time.Unix(1, 0))
	fills := map[string]draw.Terminal{"7": {}, "100": {Colour: true}, "48;5;237": {Colour: true, Many: true}, "48;2;34;52;77": {Colour: true, Many: true, True: true}}
	for fill, term := range fills {
		s := draw.Style{Theme: draw.NewTheme(draw.Auto, term)}
		row, off := table.Lines(s, 40, 2)[1], s.Theme.Off(draw.Title)
		for _, piece := range strings.SplitAfter(row, off) {
			if start, _, _ := strings.Cut(piece, "m"); piece != "" && !strings.Contains(start+";", fill+";") {
				t.Errorf("%+v: %q of %q has no tint", term, piece, row)
			}
		}
		for _, want := range []string{"▸", s.Theme.Tinted().Paint(draw.Bad, "a    "), s.Theme.Tinted().Paint(draw.BarUsed, "     █")} {
			if !strings.Contains(row, want) {
				t.Errorf("%+v: the row under the cursor lacks %q: %q", term, want, row)
			}
		}
		s.Idle = true
		if row := table.Lines(s, 40, 2)[1]; !strings.Contains(row, s.Paint(draw.Border, "▸")) || !strings.Contains(row, s.Paint(draw.Bad, "a    ")) {
			t.Errorf("%+v: the cursor of an idle table is more than a sign: %q", term, row)
		}
	}
}

// TestWords: only words are highlighted, not the columns and values of comparisons.
func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"shop 10.0": "shop 10.0", "free<5 m5": "m5", "free < 5": "", "free <5 a": "a", "free< 5": "", "free >= 5 a": "a",
		"zone = x": "", "zone != x y": "y", "zone= x": "x", "foo !bar": "foo", "re:x label:a=b \"q": "", "A": "a",
	} {
		if got := strings.Join(words(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
