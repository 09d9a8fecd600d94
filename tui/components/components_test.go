package components

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

var start = time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)

var texts = []string{"", "a", "ip-10-0-3-17", "東京都渋谷区", "é́́́", "❤\ufe0f❤\ufe0f", strings.Repeat("long ", 80), "🇩🇪🇫🇷", "…", "x\u0301"}

func anyText(r *rand.Rand) string { return texts[r.IntN(len(texts))] }

func exactly(t *testing.T, what string, lines []string, width, height int, asciiOnly bool) {
	t.Helper()
	if width <= 0 || height <= 0 {
		if len(lines) != 0 {
			t.Fatalf("%s: %d lines without room", what, len(lines))
		}
		return
	}
	if len(lines) != height {
		t.Fatalf("%s: %d lines, want %d", what, len(lines), height)
	}
	for _, l := range lines {
		if got := max(ansi.StringWidth(l), ansi.StringWidthWc(l)); got > width {
			t.Fatalf("%s: %d wide, want %d: %q", what, got, width, l)
		}
		if strings.ContainsAny(l, "\n\r\t") || !utf8.ValidString(l) {
			t.Fatalf("%s: %q", what, l)
		}
		if plain := ansi.Strip(l); asciiOnly && draw.Plain7(plain) != plain {
			t.Fatalf("%s: not ASCII: %q", what, plain)
		}
	}
}

func TestPartsAreExactlyAsLargeAsTheirRoom(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		s := draw.Style{Theme: draw.NewTheme(draw.Themes()[r.IntN(6)], draw.Terminal{Colour: r.IntN(2) == 0, True: r.IntN(2) == 0}), ASCII: r.IntN(3) == 0}
		w, h := r.IntN(140)-2, r.IntN(40)-2
		value := func() float64 {
			return []float64{0, 1, 17, math.NaN(), -3, 1e18, r.Float64() * 100, math.Inf(1)}[r.IntN(8)]
		}
		values := func() []float64 {
			out := make([]float64, r.IntN(200))
			for i := range out {
				out[i] = value()
			}
			return out
		}
		chart := draw.Chart{Span: anyText(r)}
		for range r.IntN(5) {
			chart.Areas = append(chart.Areas, draw.Area{Name: anyText(r), Role: draw.BarUsed, Values: values()})
			chart.Levels = append(chart.Levels, draw.Level{Name: anyText(r), Role: draw.Warn, Value: value(), Values: values()})
		}
		exactly(t, "chart", chart.Lines(s, w, h), w, h, s.ASCII)
		m := draw.BlockMap{Count: r.IntN(600), Cursor: r.IntN(600) - 1, Cells: func(i int, into []draw.Cell) {
			for j := range into {
				into[j] = draw.Cell{Glyph: "█", ASCII: "#", Role: draw.Role((i + j) % 5)}
			}
		}}
		if r.IntN(2) == 0 {
			m.Label = func(int) string { return anyText(r) }
		}
		m.Arrange(w, h)
		exactly(t, "map", m.Lines(s, w, h), w, h, s.ASCII)
		var view LogView
		view.Wrap = r.IntN(2) == 0
		for range r.IntN(60) {
			view.Append(LogLine{Parts: []draw.Span{draw.T(draw.Info, anyText(r)), draw.T(draw.Text, anyText(r))}})
		}
		for range r.IntN(4) {
			view.Do([]string{keymap.Up, keymap.PageUp, keymap.First, keymap.Down}[r.IntN(4)])
		}
		exactly(t, "log", view.Lines(s, w, h), w, h, s.ASCII)
		var panes []Pane
		for range r.IntN(4) {
			panes = append(panes, Pane{Title: anyText(r), Note: anyText(r), Focused: r.IntN(2) == 0, Weight: r.IntN(3), Least: r.IntN(5), Lines: func(_ draw.Style, width, height int) []string {
				return draw.Exactly([]string{draw.NewLine(s, width).Add(draw.Text, anyText(r)).String()}, width, height)
			}})
		}
		exactly(t, "panes", Panes(s, w, h, panes), w, h, s.ASCII)
		if got := draw.Width(ansi.Strip(draw.Gauge(s, w, value(), draw.Part{Value: value(), Role: draw.BarUsed}, draw.Part{Value: value(), Role: draw.BarCooling}))); w > 0 && got != w {
			t.Fatalf("gauge: %d cells, want %d", got, w)
		}
		if got := draw.Width(show.Spark(values(), w, value(), s.ASCII)); w > 0 && got != w {
			t.Fatalf("spark: %d cells, want %d", got, w)
		}
		if got := draw.Width(s.Fit(anyText(r), w, r.IntN(2) == 0)); w > 0 && got != w {
			t.Fatalf("fit: %d cells, want %d", got, w)
		}
	}
}

type row struct {
	name  string
	count int
}

func newTable() *Table[row] {
	return NewTable(TableOptions[row]{
		Columns: []query.Column[row]{
			{Name: "name", Header: "NAME", Text: func(r row) string { return r.name }, Least: 8},
			{Name: "count", Header: "COUNT", Right: true, Text: func(r row) string { return fmt.Sprint(r.count) }, Number: func(r row) (float64, bool) { return float64(r.count), true }},
			{Name: "more", Header: "MORE", Drop: 1, Text: func(r row) string { return r.name + r.name }},
		},
		ID: func(r row) string { return r.name }, Order: "-count",
	})
}

func TestTableInAnyRoom(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	table, now := newTable(), start
	for range 3000 {
		var rows []row
		for i := range r.IntN(80) {
			rows = append(rows, row{fmt.Sprint(i, anyText(r)), r.IntN(50)})
		}
		now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
		table.SetRows(rows, now)
		table.Do([]string{keymap.Up, keymap.Down, keymap.PageDown, keymap.Last, keymap.Mark, keymap.Range, keymap.Reverse, keymap.SortRight}[r.IntN(8)], now)
		w, h := r.IntN(120)-1, r.IntN(50)-1
		s := draw.Style{Theme: draw.NewTheme(draw.Dark, draw.Terminal{Colour: true}), ASCII: r.IntN(2) == 0}
		lines := table.Lines(s, w, h)
		exactly(t, "table", lines, w, h, s.ASCII)
		if again := table.Lines(s, w, h); strings.Join(again, "\n") != strings.Join(lines, "\n") {
			t.Fatal("drawing twice gives two pictures")
		}
		if first, last := table.Window(); h > 1 && w > 0 && len(table.rows) > 0 && (table.cursor+1 < first || table.cursor+1 > last) {
			t.Fatalf("the cursor %d is not in the window %d–%d", table.cursor+1, first, last)
		}
		if r.IntN(5) == 0 {
			_ = table.SetFilter([]string{"", "1", "count>10", "ip", "re:("}[r.IntN(5)])
		}
	}
}

func TestTableDropsByPriorityNeverTheFirst(t *testing.T) {
	t.Parallel()
	table := newTable()
	table.SetRows([]row{{"one", 1}, {"two", 2}}, start)
	s := draw.Style{Theme: draw.PlainTheme()}
	wide, narrow := table.Lines(s, 60, 3)[0], table.Lines(s, 24, 3)[0]
	if !strings.Contains(wide, "MORE") || strings.Contains(narrow, "MORE") || !strings.Contains(narrow, "NAME") || !strings.Contains(narrow, "COUNT") {
		t.Errorf("%q and %q", wide, narrow)
	}
}

func TestTableWidthsDoNotJump(t *testing.T) {
	t.Parallel()
	table, s := newTable(), draw.Style{Theme: draw.PlainTheme()}
	table.SetRows([]row{{"a-long-name-of-a-node", 1000}}, start)
	before := table.Lines(s, 80, 4)[0]
	table.SetRows([]row{{"short", 1}}, start.Add(time.Minute))
	if after := table.Lines(s, 80, 4)[0]; after != before {
		t.Errorf("columns moved:\n%q\n%q", before, after)
	}
	if err := table.SetFilter("short"); err != nil {
		t.Fatal(err)
	}
	if after := table.Lines(s, 80, 4)[0]; after == before {
		t.Error("another filter keeps the old widths")
	}
}

// TestTableOrderWaits: rows change their places at most every two seconds, and not within two
// seconds of the user's last move; their values change at once.
func TestTableOrderWaits(t *testing.T) {
	t.Parallel()
	table, at := newTable(), func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	table.SetRows([]row{{"a", 3}, {"b", 2}, {"c", 1}}, at(0))
	for _, x := range []struct {
		after float64
		do    func(now time.Time)
		want  string
	}{
		{1.9, func(now time.Time) { table.SetRows([]row{{"a", 3}, {"b", 2}, {"c", 9}}, now) }, "a3 b2 c9"},
		{2, table.Settle, "c9 a3 b2"},
		{5, func(now time.Time) { table.Do(keymap.Down, now) }, "c9 a3 b2"},
		{6.9, func(now time.Time) { table.SetRows([]row{{"a", 3}, {"b", 12}, {"c", 9}}, now) }, "c9 a3 b12"},
		{6.99, table.Settle, "c9 a3 b12"},
		{7, table.Settle, "b12 c9 a3"},
	} {
		x.do(at(x.after))
		var got []string
		for _, r := range table.Rows() {
			got = append(got, fmt.Sprint(r.name, r.count))
		}
		if have := strings.Join(got, " "); have != x.want {
			t.Errorf("after %v s: %s, want %s", x.after, have, x.want)
		}
	}
}

func TestFaultsAndFilterTogether(t *testing.T) {
	t.Parallel()
	table := newTable()
	table.o.Fault = func(r row) bool { return r.count > 1 }
	table.SetRows([]row{{"ab", 1}, {"ac", 2}, {"bc", 3}}, start)
	table.SetFaults(true)
	if err := table.SetFilter("a"); err != nil {
		t.Fatal(err)
	}
	if shown, all := table.Found(); shown != 1 || all != 3 {
		t.Errorf("%d of %d", shown, all)
	}
}

func TestLogViewFollowsUntilOneGoesUp(t *testing.T) {
	t.Parallel()
	var v LogView
	line := func(i int) LogLine { return LogLine{Parts: []draw.Span{draw.T(draw.Text, fmt.Sprint(i))}} }
	for i := range LogLines + 5 {
		v.Append(line(i))
	}
	if v.Len() != LogLines || v.Dropped != 5 || !v.Following() {
		t.Errorf("%d lines, %d dropped", v.Len(), v.Dropped)
	}
	v.Lines(draw.Style{Theme: draw.PlainTheme()}, 20, 10)
	v.Do(keymap.Up)
	at, _ := v.Line()
	v.Append(line(-1))
	if now, _ := v.Line(); now.Parts[0] != at.Parts[0] || v.Following() {
		t.Errorf("the view moved from %v to %v", at, now)
	}
	v.Do(keymap.Last)
	if !v.Following() {
		t.Error("at the end it does not follow")
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	var in Input
	for _, k := range []string{"w", "a", "r", "m", ">"} {
		in.Key(k, k)
	}
	in.Type("2\x1b\n x")
	if got := in.Text(); got != "warm>2 x" {
		t.Errorf("%q", got)
	}
	in.Key("ctrl+w", "")
	in.Key("home", "")
	in.Key("delete", "")
	in.Key("!", "!")
	if got := in.Text(); got != "!arm>2 " {
		t.Errorf("%q", got)
	}
	in.Key("ctrl+k", "")
	in.Key("backspace", "")
	in.Key("backspace", "")
	if got := in.Text(); got != "" {
		t.Errorf("%q", got)
	}
	in.Type(strings.Repeat("é", 2*maxInput))
	if got := utf8.RuneCountInString(in.Text()); got != maxInput {
		t.Errorf("%d characters", got)
	}
	in.Set("ip-\x00\u202e10") // the palette completes names of nodes
	if got := in.Text(); got != "ip-10" {
		t.Errorf("%q", got)
	}
	if in.Key("f5", "") {
		t.Error("f5 is text")
	}
}
