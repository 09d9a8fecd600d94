package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnictl/testenv/terminal"
)

func TestParse(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if _, err := parse([]string{"--bin", bin}); err == nil {
		t.Error("parsed without the binaries")
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
			t.Errorf("%v is accepted", args)
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

// The conditions distinguish the screens: none holds before its key is pressed.
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
	s := terminal.NewScreen(60, 5, nil)
	fmt.Fprint(s, " cnictl x  nodes 5,000 | live 4 unasked 3\r\n  NODE\r\n▸ ip-10-0-0-1  m5\r\n foot\x1b[4;1H Nodes")
	if selected(s) != "ip-10-0-0-1" || status(s) != " Nodes" || !hasAll(5000)(s) || hasAll(5001)(s) || isSwept(s) {
		t.Errorf("selected %q, foot %q", selected(s), status(s))
	}
}

func TestTable_ReportsRows(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	x := table{progress: &out}
	x.add("a", "ms", 40).aim(50)
	if out.Len() > 0 {
		t.Errorf("reported before it is complete: %q", &out)
	}
	x.add("b", "MB", 300).must(250)
	x.report()
	x.report()
	if want := "a: 40 ms (target 50) ok\nb: 300 MB (target 250) MISSED\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
	if err := x.failed(); err == nil || err.Error() != "b: 300 MB, at most 250 is allowed" {
		t.Errorf("%v", err)
	}
}

// TestSoaked: a figure beyond its bound fails the bench, and so does one that grows.
func TestSoaked(t *testing.T) {
	t.Parallel()
	steady := func(change func(i int, v *vitals)) []vitals {
		out := make([]vitals, 9)
		for i := range out {
			out[i] = vitals{goroutines: 200 + i%3, sockets: 20, memory: 100e6}
			change(i, &out[i])
		}
		return out
	}
	for name, tt := range map[string]struct {
		change func(int, *vitals)
		key    time.Duration
		want   string
	}{
		"steady":     {func(int, *vitals) {}, 40 * time.Millisecond, ""},
		"goroutines": {func(i int, v *vitals) { v.goroutines += 20 * i }, 0, "most goroutines in the last third"},
		"sockets":    {func(i int, v *vitals) { v.sockets += 10 * i }, 0, "most sockets in the last third"},
		"memory":     {func(i int, v *vitals) { v.memory += 40e6 * float64(i%5) }, 0, "most resident memory"},
		"slow":       {func(int, *vitals) {}, 60 * time.Millisecond, "key to frame, p99"},
	} {
		s := &session{}
		s.soaked(500, []time.Duration{tt.key}, steady(tt.change))
		err := s.failed()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDiagnosed(t *testing.T) {
	t.Parallel()
	s := terminal.NewScreen(80, 4, nil)
	fmt.Fprint(s, " cnictl x\r\n sweep 1s  tunnels 16  API requests 3\r\n heap 40 MiB  goroutines 1,142")
	if v := diagnosed(s); v == nil || v.goroutines != 1142 || v.tunnels != 16 {
		t.Errorf("%+v", v)
	}
	if v := diagnosed(terminal.NewScreen(80, 4, nil)); v != nil {
		t.Errorf("of nothing: %+v", v)
	}
}
