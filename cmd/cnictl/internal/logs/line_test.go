package logs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
)

func TestParseLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 14, 1, 11, 0, time.UTC)
	for line, want := range map[string]introspect.LogItem{
		`{"level":"warn","ts":"2026-11-21T14:01:11.000Z","caller":"a.go:1","msg":"ADD failed","n":3,"who":"a b","deep":{"x":[1]},"none":null}`: {At: &at, Level: "warn", Message: `ADD failed n=3 who=a b deep={"x":[1]} none=null`},
		`{"level":"panic","msg":"m"}`:   {Level: "fatal", Message: "m"},
		`{"level":"loud","msg":"m"}`:    {Level: "info", Message: "m"},
		`{"ts":"nonsense"}`:             {Message: `{"ts":"nonsense"}`},
		`{"level":3}`:                   {Message: `{"level":3}`},
		"2026-11-21T14:01:11Z starting": {At: &at, Message: "starting"},
		`2026-11-22T00:00:00Z {"level":"warn","ts":"2026-11-21T14:01:11Z","msg":"m"}`: {At: &at, Level: "warn", Message: "m"},
		"panic: boom": {Message: "panic: boom"},
		"":            {},
		"{":           {Message: "{"},
	} {
		want.Node, want.Line = "n", line
		if diff := cmp.Diff(want, parseLine("n", line)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	item := parseLine("n", `{"level":"warn","msg":"ADD failed","pod":"cart","namespace":"shop"}`)
	for _, tt := range []struct {
		opts Options
		want bool
	}{
		{Options{}, true}, {Options{Level: "warn"}, true}, {Options{Level: "error"}, false}, {Options{Level: "debug"}, true},
		{Options{Pod: "cart"}, true}, {Options{Pod: "shop/cart"}, true}, {Options{Pod: "other/cart"}, false}, {Options{ENI: "eni-1"}, false}, {Options{Grep: "ADD"}, true},
	} {
		if got := tt.opts.filter().accepts(item); got != tt.want {
			t.Errorf("%+v: %v", tt.opts, got)
		}
	}
	if got := (&Options{Pod: "a/cart-1", ENI: "eni-0a1b2c"}).match(); got != "eni-0a1b2c" {
		t.Errorf("the node looks for %q", got)
	}
}

func line(at, msg string) string { return `{"level":"info","ts":"` + at + `","msg":"` + msg + `"}` }

// TestSortLines: lines without a time stay behind the one before them.
func TestSortLines(t *testing.T) {
	t.Parallel()
	var items []introspect.LogItem
	for _, l := range []struct{ node, line string }{
		{"a", line("2026-11-21T14:00:03Z", "3")}, {"a", "after 3"}, {"a", line("2026-11-21T14:00:05Z", "5")},
		{"b", line("2026-11-21T14:00:01Z", "1")}, {"b", line("2026-11-21T14:00:04Z", "4")},
	} {
		items = append(items, parseLine(l.node, l.line))
	}
	sortLines(items)
	var got []string
	for _, i := range items {
		got = append(got, i.Message)
	}
	if diff := cmp.Diff([]string{"1", "3", "after 3", "4", "5"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestFresh: a line is told once, also those of one moment, and an answer that overlaps
// the one before loses and repeats nothing.
func TestFresh(t *testing.T) {
	t.Parallel()
	r := &reader{last: map[string]place{}}
	one, two, three := line("2026-11-21T14:00:01Z", "1"), line("2026-11-21T14:00:02Z", "2"), line("2026-11-21T14:00:02Z", "3")
	for i, step := range []struct{ in, want []string }{
		{[]string{one, two}, []string{one, two}},
		{[]string{two}, nil},
		{[]string{two, three}, []string{three}},
		{[]string{one, two, three}, nil},
		{[]string{"no time", line("2026-11-21T14:00:03Z", "4")}, []string{line("2026-11-21T14:00:03Z", "4")}},
	} {
		if diff := cmp.Diff(step.want, r.fresh("n", step.in)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// FuzzParseLine: whatever a log holds, the line is kept whole, and what passes a level
// passes each below it.
func FuzzParseLine(f *testing.F) {
	f.Add(`{"level":"warn","ts":"2026-11-21T14:01:11.000Z","msg":"m","a":1}`)
	f.Add("goroutine 1 [running]:")
	f.Add(`{"level":"warn","level":"x","msg":null,"ts":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		i := parseLine("n", text)
		if i.Line != text || !strings.Contains(text, "{") && !strings.HasSuffix(text, i.Message) {
			t.Fatalf("%q gives %+v", text, i)
		}
		passed := true
		for _, level := range levels {
			passes := filter{level: level}.accepts(i)
			if passes && !passed {
				t.Fatalf("%q passes %s and not what is below", text, level)
			}
			passed = passes
		}
	})
}
