package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if _, err := parse([]string{"--bin", bin}); err == nil {
		t.Error("no binaries are needed")
	}
	for _, name := range []string{"cnictl", "fleetsim"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o, err := parse([]string{"--bin", bin, "--phases", "start,view", "--quick"})
	if err != nil || len(o.sizes) != 1 || o.keys != 200 || len(o.phases) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse([]string{"--bin", bin}); err != nil || o.sizes[len(o.sizes)-1] != 5000 || o.keys < 2000 || o.rest < 20*time.Second {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"--phases", "end"}, {"now"}, {"--odd"}} {
		if _, err := parse(append([]string{"--bin", bin}, args...)); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	if _, err := parse([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
	for _, p := range allPhases {
		if !strings.Contains(usage, p) {
			t.Errorf("the help does not name %s", p)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var x table
	x.add("a", "ms", 40).aim(50).beside(160)
	x.add("b", "s", 61).aim(30)
	x.add("c", "", 3)
	x.note("said %d", 1)
	var out bytes.Buffer
	x.print(&out)
	var got []string
	for l := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(l), " "))
	}
	want := []string{"", "unit measured target /target eks-node-viewer /eks-node-viewer", "a ms 40 50 0.80 ok 160 0.25", "b s 61 30 2.03 MISSED – –", "c 3 – – – –", "", "said 1"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	list := []time.Duration{4, 1, 3, 2}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 4, 1: 4} {
		if got := quantile(list, q); got != want {
			t.Errorf("%v: %d, want %d", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("of nothing")
	}
}

func TestReadsOutput(t *testing.T) {
	t.Parallel()
	sum, n := initTime([]byte("init os @0.40 ms, 0.012 ms clock, 416 bytes, 9 allocs\nother\ninit a/b @1.4 ms, 1.5 ms clock, 16 bytes, 9 allocs\n"))
	if sum != 1512*time.Microsecond || n != 2 {
		t.Errorf("%v of %d", sum, n)
	}
	b := benchmarks([]byte("goos: linux\nBenchmarkChange-2   5   2800000 ns/op   102.0 eks-node-viewer-ms/frame   320000 B/op   926 allocs/op\nPASS\n"))["BenchmarkChange"]
	if b["ns/op"] != 2.8e6 || b["B/op"] != 320000 || b["allocs/op"] != 926 {
		t.Errorf("%v", b)
	}
}

// The conditions tell pictures of the screens apart: none holds already before its key.
func TestScript(t *testing.T) {
	t.Parallel()
	at := func(selected, status string) *picture { return &picture{selected, status} }
	browsing := at("ip-1", " Nodes     1–38/412  sort: ip ▼")
	for _, tt := range []struct {
		press         press
		before, after *picture
	}{
		{moves("j")[0], browsing, at("ip-2", browsing.status)},
		{typing("m5")[0], browsing, at("ip-1", " /        412 of 412")},
		{typing("m5")[2], at("ip-1", " /m"), at("ip-1", " /m5")},
		{typing("m5")[3], at("ip-1", " /m5"), at("ip-1", " Nodes filter: m5")},
		{sorting("i")[0], browsing, at("ip-1", " sort by  n name")},
		{sorting("i")[1], at("ip-1", " sort by  n name"), browsing},
	} {
		if tt.press.shows(tt.before, tt.before) || !tt.press.shows(tt.before, tt.after) {
			t.Errorf("%q of %s", tt.press.bytes, tt.press.kind)
		}
	}
	kinds := map[string]bool{}
	for _, p := range script() {
		kinds[p.kind] = true
	}
	if len(kinds) != 4 {
		t.Errorf("the script has %v", kinds)
	}
	s := newScreen(60, 5, nil)
	drawn(s, " cnictl x  nodes 5,000 | live 4 unasked 3\r\n  NODE\r\n▸ ip-10-0-0-1  m5\r\n foot\x1b[4;1H Nodes")
	if selected(s) != "ip-10-0-0-1" || status(s) != " Nodes" || !hasAll(5000)(s) || hasAll(5001)(s) || isSwept(s) {
		t.Errorf("selected %q, foot %q", selected(s), status(s))
	}
}
