package table

import (
	"slices"
	"strings"
	"testing"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/tui/show"
)

func sample() Table {
	return Table{
		Columns: []Column{{Name: "NODE"}, {Name: "IPS", Right: true}, {Name: "TYPE", Drop: 1}, {Name: "AGE", Right: true, Drop: 2}, {Name: "STATUS", Free: true}},
		Rows: [][]Cell{
			Cells("ip-10-0-3-17", "7", "m5.large", "3h20m", "ok"),
			Cells("n", "1203", "", "5s", "unreachable: connection refused"),
			Cells("e\x1b[2J", "?", "?", "?", "東京"),
		},
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		opts Options
		want string
	}{
		"unlimited": {Options{}, `
NODE           IPS  TYPE        AGE  STATUS
ip-10-0-3-17     7  m5.large  3h20m  ok
n             1203               5s  unreachable: connection refused
e\x1b[2J         ?  ?             ?  東京
`},
		"no headers": {Options{NoHeaders: true}, `
ip-10-0-3-17     7  m5.large  3h20m  ok
n             1203               5s  unreachable: connection refused
e\x1b[2J         ?  ?             ?  東京
`},
		"cut": {Options{Width: 54}, `
NODE           IPS  TYPE        AGE  STATUS
ip-10-0-3-17     7  m5.large  3h20m  ok
n             1203               5s  unreachable: con…
e\x1b[2J         ?  ?             ?  東京
`},
		"dropped": {Options{Width: 42}, `
NODE           IPS  TYPE      STATUS
ip-10-0-3-17     7  m5.large  ok
n             1203            unreachable…
e\x1b[2J         ?  ?         東京
`},
		"too narrow for all that may not go": {Options{Width: 10}, `
NODE       IPS  …
ip-10-0…     7  …
n         1203  …
e\x1b[2J     ?  …
`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := "\n" + strings.Join(sample().Lines(tt.opts), "\n") + "\n"; got != tt.want {
				t.Errorf("got%swant%s", got, tt.want)
			}
		})
	}
}

// TestLines_Room: how a narrow terminal affects columns requested by name, columns without
// text, and names that differ only at their ends.
func TestLines_Room(t *testing.T) {
	t.Parallel()
	named := Table{
		Columns: []Column{{Name: "NODE", Cut: 10}, {Name: "STATE", Free: true}, {Name: "TARGETS", Drop: 1}, {Name: "ENI"}, {Name: "SUBNET"}},
		Rows:    [][]Cell{Cells("ip-10-0-255-255.internal", "unreachable: timeout", "ip 5", "eni-0123456789abcdef0", "subnet-0123456789abcdef0")},
	}
	const kept = "NODE        STATE         TARGETS  ENI                    SUBNET"
	if lines := named.Lines(Options{Width: 82, Keep: true}); lines[0] != kept || show.Width(lines[1]) > 82 {
		t.Errorf("%q", lines)
	}
	if got := named.Dropped(Options{Width: 82, Keep: true}); got != nil {
		t.Errorf("dropped %v", got)
	}
	if got := named.Dropped(Options{Width: 60}); !slices.Equal(got, []string{"TARGETS", "SUBNET"}) {
		t.Errorf("dropped %v", got)
	}
	empty := Table{Columns: []Column{{Name: "NAME"}, {Name: "PROBLEM", Free: true, Empty: true}}, Rows: [][]Cell{Cells("A", "")}}
	for width, want := range map[int]string{0: "NAME  PROBLEM", 80: "NAME"} {
		if lines := empty.Lines(Options{Width: width}); lines[0] != want {
			t.Errorf("%d: %q, want %q", width, lines[0], want)
		}
	}
	if got := empty.Dropped(Options{Width: 80}); got != nil {
		t.Errorf("dropped %v", got)
	}
	events := Table{Columns: []Column{{Name: "AGO"}, {Name: "NODE"}, {Name: "MESSAGE", Free: true}}, Rows: [][]Cell{Cells("3m", strings.Repeat("n", 40), strings.Repeat("m", 40))}}
	if lines := events.Lines(Options{Width: 30, Keep: true}); show.Width(lines[1]) > 30 || strings.Count(lines[1], "n") < 7 || strings.Count(lines[1], "m") < 10 {
		t.Errorf("%q", lines)
	}
	pods := Table{Columns: []Column{{Name: "POD", Free: true, Ends: true}}, Rows: [][]Cell{Cells("batch/report-tw4xzhd5r-dr4x2"), Cells("batch/report-tw4xzhd5r-l4q9z")}}
	if lines := pods.Lines(Options{Width: 20}); lines[1] != "batch/report-…-dr4x2" || lines[2] != "batch/report-…-l4q9z" {
		t.Errorf("%q", lines)
	}
}

func TestLines_FollowingRowsKeepTheirColumns(t *testing.T) {
	t.Parallel()
	first := sample()
	head := first.Lines(Options{})
	next := Table{Columns: first.Columns, Rows: [][]Cell{Cells("n", "8", "a", "9s", "ok")}}
	got := next.Lines(Options{NoHeaders: true, MinWidths: first.Widths(Options{})})[0]
	if strings.Index(got, "ok") != strings.Index(head[0], "STATUS") {
		t.Errorf("\n%s\n%s", head[0], got)
	}
}

func TestLines_ColoursTakeNoRoom(t *testing.T) {
	t.Parallel()
	tab := sample()
	tab.Rows[0][0].Class = paint.Bad
	plain := sample().Lines(Options{Width: 60})
	for i, line := range tab.Lines(Options{Width: 60, Palette: paint.Colours()}) {
		if paint.Width(line) != paint.Width(plain[i]) {
			t.Errorf("line %d: %q and %q", i, line, plain[i])
		}
	}
}

// TestLines_LongNames: long names are shortened, as long as they remain distinct, before columns
// are dropped; and any text is shortened before a line gets too long.
func TestLines_LongNames(t *testing.T) {
	t.Parallel()
	const name = "ip-10-0-3-17.eu-west-1.compute.internal"
	tab := Table{
		Columns: []Column{{Name: "NODE", Cut: 19}, {Name: "N", Right: true, Drop: 1}, {Name: "KIND"}},
		Rows:    [][]Cell{Cells(name, "1", "secondary")},
	}
	for width, want := range map[int]string{
		80: name + "  1  secondary", 40: "ip-10-0-3-17.eu-west-1.co…  1  secondary", 33: "ip-10-0-3-17.eu-we…  1  secondary",
		30: "ip-10-0-3-17.eu-we…  secondary", 20: "ip-10-0-…  secondary",
	} {
		if got := tab.Lines(Options{Width: width, NoHeaders: true})[0]; got != want {
			t.Errorf("%d: %q, want %q", width, got, want)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add("node", "status", 40)
	f.Add("\x1b[31m", "東京都\u202e", 23)
	f.Fuzz(func(t *testing.T, node, status string, width int) {
		width = min(max(width, 40), 300)
		tab := sample()
		tab.Columns[0].Free = true
		tab.Rows = append(tab.Rows, Cells(node, "1", "t", "a", status))
		lines := tab.Lines(Options{Width: width})
		if len(lines) != 5 {
			t.Fatalf("%d lines", len(lines))
		}
		for _, line := range lines {
			if paint.Width(line) > width || strings.ContainsAny(line, "\x1b\n\r") {
				t.Fatalf("width %d: %q", width, line)
			}
		}
	})
}

// TestLines_IDsAreNeverCut: a partial ID is useless, so IDs are dropped rather than truncated,
// and free text shrinks first.
func TestLines_IDsAreNeverCut(t *testing.T) {
	t.Parallel()
	eni, subnet := "eni-07a3db74a62746b84", "subnet-000000000a11ce000"
	for width := 20; width < 100; width++ {
		table := Table{
			Columns: []Column{{Name: "NODE"}, {Name: "ENI"}, {Name: "IPS", Right: true}, {Name: "SUBNET", Free: true}, {Name: "WHY", Free: true}},
			Rows:    [][]Cell{Cells("ip-10-0-3-17", eni, "7", subnet, "something that takes a while to say")},
		}
		text := strings.Join(table.Lines(Options{Width: width}), "\n")
		if !strings.Contains(text, eni) || strings.Contains(text, "SUBNET") != strings.Contains(text, subnet) {
			t.Errorf("at %d:\n%s", width, text)
		}
	}
}
