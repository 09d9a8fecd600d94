package logs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/document"
)

func TestParseLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 14, 1, 11, 0, time.UTC)
	for line, want := range map[string]document.LogItem{
		`{"level":"warn","ts":"2026-11-21T14:01:11.000Z","caller":"a.go:1","msg":"ADD failed","n":3,"who":"a b","deep":{"x":[1]},"none":null}`: {At: &at, Level: "warn", Message: `ADD failed n=3 who=a b deep={"x":[1]} none=null`},
		`{"level":"panic","msg":"m"}`:   {Level: "fatal", Message: "m"},
		`{"level":"loud","msg":"m"}`:    {Level: "info", Message: "m"},
		`{"ts":"nonsense"}`:             {Message: `{"ts":"nonsense"}`},
		`{"level":3}`:                   {Message: `{"level":3}`},
		"2026-11-21T14:01:11Z starting": {At: &at, Message: "starting"},
		`2026-11-22T00:00:00Z {"level":"warn","ts":"2026-11-21T14:01:11Z","msg":"m"}`: {At: &at, Level: "warn", Message: "m"},
		`{"msg":"m","pod":"cart","namespace":"shop","eni_id":"eni-1","ip":"10.0.0.1"}`: {
			Message: "m pod=cart namespace=shop eni_id=eni-1 ip=10.0.0.1", Pod: "cart", Namespace: "shop", ENIID: "eni-1", IP: "10.0.0.1",
		},
		`{"msg":"m","pod":"shop/cart"}`: {Message: "m pod=shop/cart", Pod: "cart", Namespace: "shop"},
		"panic: boom":                   {Message: "panic: boom"},
		"":                              {},
		"{":                             {Message: "{"},
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
		{Options{Pod: "cart"}, true}, {Options{Pod: "shop/cart"}, true}, {Options{Pod: "other/cart"}, false}, {Options{Pod: "shop/car"}, false}, {Options{ENI: "eni-1"}, false}, {Options{Grep: "ADD"}, true},
	} {
		if got := tt.opts.filter().accepts(item); got != tt.want {
			t.Errorf("%+v: %v", tt.opts, got)
		}
	}
	if got := (&Options{Pod: "a/cart-1", ENI: "eni-0a1b2c"}).match(); got != "eni-0a1b2c" {
		t.Errorf("the node looks for %q", got)
	}
	if got := (&Options{Pod: "a-long-namespace/b"}).match(); got != "b" {
		t.Errorf("the node looks for %q, which lines need not have", got)
	}
}

// TestPodFilter: a pod is not confused with one whose name or namespace contains its own.
func TestPodFilter(t *testing.T) {
	t.Parallel()
	const upstream = `{"level":"info","msg":"Received CNI add request: Args(IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=api-1;K8S_POD_INFRA_CONTAINER_ID=0)"}`
	for _, tt := range []struct {
		pod, line string
		want      bool
	}{
		{"default/api-1", `{"msg":"a pod got an address","pod":"api-1","namespace":"default"}`, true},
		{"api-1", `{"msg":"a pod got an address","pod":"api-1","namespace":"default"}`, true},
		{"default/api-1", `{"msg":"a pod got an address","pod":"api-10","namespace":"default"}`, false},
		{"default/api-1", `{"msg":"a pod got an address","pod":"api-1","namespace":"default-2"}`, false},
		{"default/api-1", `{"msg":"the default of api-1","pod":"web-0","namespace":"default"}`, false},
		{"default/api-1", `{"msg":"m","pod":"default/api-1"}`, true},
		{"other/api-1", `{"msg":"m","pod":"default/api-1"}`, false},
		{"default/api-1", upstream, true},
		{"api-1", upstream, true},
		{"other/api-1", upstream, false},
		{"default/api", upstream, false},
		{"default/api-1", "failed for default/api-1.", true},
		{"default/api-1", "failed for api-1: no address", true},
		{"default/api-1", "failed for other/api-1", false},
		{"default/api-1", "failed for my-default/api-1", false},
		{"api-1", "failed for other/api-1", true},
		{"default/api-1", "failed for default/api-10 and default/api-1", true},
		{"default/api-1", "failed for default/api-1-x, my-api-1 and api-1.y", false},
		{"default/api-1", `{"msg":"line\napi-1"}`, true},
		{"default/api-1", `{"msg":"m","error":"setup of default/api-1 failed"}`, true},
	} {
		f := (&Options{Pod: tt.pod}).filter()
		if got := f.accepts(parseLine("n", tt.line)); got != tt.want {
			t.Errorf("%s in %s: %v", tt.pod, tt.line, got)
		}
	}
}

// TestSince: lines that are too old are dropped, from any source, along with their continuation
// lines. Lines of unknown age stay.
func TestSince(t *testing.T) {
	t.Parallel()
	var items []document.LogItem
	for _, l := range []string{"begins without a time", line("2026-11-03T14:00:00Z", "old"), "of the old", line("2026-11-21T14:00:00Z", "new"), "of the new"} {
		items = append(items, parseLine("n", l))
	}
	var got []string
	for _, i := range since(items, time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)) {
		got = append(got, i.Message)
	}
	if diff := cmp.Diff([]string{"begins without a time", "new", "of the new"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestClock: once one line is from another day, all lines have a date.
func TestClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC)
	r := &reader{f: &cli.Factory{Now: func() time.Time { return now }}}
	today := []document.LogItem{parseLine("n", line("2026-11-21T00:00:01Z", "m")), {}}
	for i, step := range []struct {
		items []document.LogItem
		want  string
	}{
		{today, clockOfDay},
		{append(today, parseLine("n", line("2026-11-22T00:00:01Z", "the next day"))), clockOfDate},
		{today, clockOfDate},
	} {
		if got := r.clock(step.items); got != step.want {
			t.Errorf("step %d: %s", i, got)
		}
	}
}

func line(at, msg string) string { return `{"level":"info","ts":"` + at + `","msg":"` + msg + `"}` }

// TestSortLines: lines without a time stay behind the line before them.
func TestSortLines(t *testing.T) {
	t.Parallel()
	var items []document.LogItem
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

// TestFresh: each line is returned once, even if several have the same time, and overlapping
// answers neither lose nor repeat lines.
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

// TestFilter_AccessLines: introspection requests, as logged by upstream and by this daemon,
// pass only on request. A line that quotes the words does not count as one.
func TestFilter_AccessLines(t *testing.T) {
	t.Parallel()
	for line, access := range map[string]bool{
		`{"level":"info","ts":"2026-11-21T03:00:10.939Z","caller":"http/server.go:2828","msg":"Handling http request: GET, from: 127.0.0.1:50958, URI: /v1/enis"}`: true,
		`{"level":"debug","ts":"2026-11-21T03:00:10.939Z","msg":"Handling http request: GET, from: @, URI: /v1/summary"}`:                                          true,
		`{"level":"warn","msg":"refused","detail":"Handling http request: GET"}`:                                                                                   false,
	} {
		i := parseLine("n", line)
		if got := (filter{}).accepts(i); got == access {
			t.Errorf("%s: accepted %v", line, got)
		}
		if !(filter{access: true}).accepts(i) {
			t.Errorf("%s is left out though access lines are asked for", line)
		}
	}
}

// FuzzParseLine: every line is kept in full, and a line that passes a level passes all lower
// ones.
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
