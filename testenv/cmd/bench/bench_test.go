package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/text/terminal"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set     func(*row) *row
		samples []float64
		verdict string
	}{
		"nothing measured":  {func(r *row) *row { return r.against(100, 0.2, 0.06) }, nil, ""},
		"reached":           {func(r *row) *row { return r.against(100, 0.2, 0.06) }, []float64{5, 6, 90}, "ok"},
		"below the aim":     {func(r *row) *row { return r.against(100, 0.2, 0.06) }, []float64{5, 19, 90}, "below aim"},
		"missed":            {func(r *row) *row { return r.against(100, 0.2, 0.06) }, []float64{5, 21, 90}, "MISSED"},
		"nothing allowed":   {func(r *row) *row { return r.atMost(0) }, []float64{1}, "MISSED"},
		"nothing, reached":  {func(r *row) *row { return r.atMost(0) }, []float64{0}, "ok"},
		"without a rule":    {func(r *row) *row { return r.beside(3) }, []float64{1}, ""},
		"only hoped for":    {func(r *row) *row { return r.beside(10).aimAt(4) }, []float64{9}, "below aim"},
		"no other's figure": {func(r *row) *row { return r.against(unknown, 0.2, 0.1) }, []float64{9}, ""},
	} {
		if got := tt.set(new(table).add("x", "", tt.samples...)).verdict(); got != tt.verdict {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestBench: a figure that misses, a command that fails and an error in a phase end with exit status 1, and the figures
// are printed.
func TestBench(t *testing.T) {
	for name, tt := range map[string]struct {
		phase func(*run)
		says  string
	}{
		"reached": {func(r *run) { r.add("a", "s", 1).atMost(2) }, ""},
		"missed":  {func(r *run) { r.add("a", "s", 3).atMost(2) }, "bench: a: 3 s, at most 2 is allowed\n"},
		"refused": {func(r *run) { r.add("a", "s", 1); r.failed = []error{errors.New("no address")} }, "bench: 1 commands failed, first: no address\n"},
		"error":   {func(r *run) { r.add("a", "s", 1); check(errors.New("no node")) }, "bench: try: no node\n"},
	} {
		s := suites["tui"]
		s.phases = []phase{{"try", tt.phase}}
		suites["try"] = s
		defer delete(suites, "try")
		var out, errOut bytes.Buffer
		code := program.Run(t.Context(), []string{"try"}, &out, &errOut)
		if (code == 0) != (tt.says == "") || !strings.HasSuffix(errOut.String(), tt.says) || !strings.Contains(out.String(), "  a  ") {
			t.Errorf("%s: exit %d, %s\n%s", name, code, &errOut, &out)
		}
	}
}

// TestBounds checks the bounds that EC2's latencies set and that can be computed.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pods     int
		prefixes bool
		enis     int
		took     float64
		calls    float64
	}{{29, false, 0, 0.4, 4}, {30, false, 1, 1.3, 7}, {150, false, 5, 1.3, 19}, {150, true, 0, 0.4, 4}} {
		v := scenario{pods: tt.pods, prefixes: tt.prefixes, latency: fakeaws.RealisticLatency()}
		if v.newENIs() != tt.enis || v.bound().least != tt.took || v.callBound().least != tt.calls {
			t.Errorf("%d pods, prefixes %t: %d ENIs, %v, %v calls", tt.pods, tt.prefixes, v.newENIs(), v.bound().least, v.callBound().least)
		}
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	sum, n := initTime([]byte("init os @0.40 ms, 0.012 ms clock, 416 bytes, 9 allocs\nother\ninit a/b @1.4 ms, 1.5 ms clock, 16 bytes, 9 allocs\n"))
	if sum != 1512*time.Microsecond || n != 2 {
		t.Errorf("%v of %d", sum, n)
	}
	if got := readPeak([]byte("said\n\npeak_kib=2000\n")); got != 2000<<10 {
		t.Error(got)
	}
	s := terminal.NewScreen(60, 5, nil)
	fmt.Fprint(s, " cnictl x  nodes 5,000 | live 4,995 down 2\r\n  NODE\r\n▸ ip-10-0-0-1  m5\r\n foot\x1b[4;1H Nodes")
	if p := pictureOf(s); p.selected != "ip-10-0-0-1" || p.status != " Nodes" || !hasAll(5000)(s) || hasAll(5001)(s) || isSwept(s) {
		t.Errorf("%+v", p)
	}
	fmt.Fprint(s, "\x1b[1;1H c  nodes 5,000 | live 4,995 down 2 | no daemon needed 3")
	if !isSwept(s) {
		t.Error(s.Line(0))
	}
	var v vitals
	s = terminal.NewScreen(80, 4, nil)
	fmt.Fprint(s, " cnictl x\r\n sweep 1s  tunnels 16\r\n heap 40 MiB  goroutines 1,142")
	if !v.diagnosed(s) || v.goroutines != 1142 || v.diagnosed(terminal.NewScreen(80, 4, nil)) {
		t.Errorf("%+v", v)
	}
	archive := &bytes.Buffer{}
	if err := frame.Attempt(func() { writeArchive(archive, 1000) }); err != nil || archive.Len() == 0 {
		t.Errorf("%v, %d bytes", err, archive.Len())
	}
}

// TestSoaked: a figure beyond its bound fails the run, and so does one that grows.
func TestSoaked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(i int, v *vitals)
		key    time.Duration
		want   string
	}{
		"steady":     {func(int, *vitals) {}, 40 * time.Millisecond, ""},
		"goroutines": {func(i int, v *vitals) { v.goroutines += 20 * i }, 0, "most goroutines in the last third"},
		"sockets":    {func(i int, v *vitals) { v.sockets += 10 * i }, 0, "most sockets in the last third"},
		"memory":     {func(i int, v *vitals) { v.memory += 40e6 * float64(i%5) }, 0, "most resident memory"},
		"slow":       {func(int, *vitals) {}, 60 * time.Millisecond, "key to frame, p99"},
	} {
		seen := make([]vitals, 9)
		for i := range seen {
			seen[i] = vitals{goroutines: 200 + i%3, sockets: 20, memory: 100e6}
			tt.change(i, &seen[i])
		}
		r := &run{}
		r.soaked([]time.Duration{tt.key}, seen)
		err := r.missed()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
