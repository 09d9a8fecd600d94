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
