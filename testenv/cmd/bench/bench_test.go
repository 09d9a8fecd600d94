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

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/text/terminal"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"":                                   "",
		"--phases connections --rounds 5":    "",
		"scale --phases start,load --runs 5": "",
		"scale --write --baseline x":         "",
		"tui --phases soak --for 30m --for 2m --bin x": "",
		"tui --phases walk":                            `"walk" is not one of first, sweep`,
		"scale --phases soak":                          `"soak" is not one of start, scale`,
		"scale --runs 0":                               "at least 1",
		"scale --write":                                "--baseline",
		"tui --for 2h":                                 "up to 30m",
		"now":                                          `suite "now"`,
		"--quick now":                                  `argument "now"`,
	} {
		_, err := parse(strings.Fields(args))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if o, err := parse([]string{"tui", "--for", "30m", "--for", "2m"}); err != nil || o.suite != "tui" || o.lasts != 2*time.Minute {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := parse([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
	for _, s := range suites {
		for _, p := range s.phases {
			if !strings.Contains(usage, p.name) {
				t.Errorf("the help does not name %s", p.name)
			}
		}
	}
}

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

func TestTable(t *testing.T) {
	t.Parallel()
	var x table
	x.add("one", "s", 3, 1, 2).against(10, 0.3, 0.1).bound = bound{0.5, "because"}
	x.add("two", "MB", 300).atMost(250).bound = bound{1, "because"}
	x.add("größe", "", 7)
	x.note("said %d", 1)
	path := filepath.Join(t.TempDir(), "b.json")
	if err := frame.Attempt(func() { x.writeBaseline(path) }); err != nil {
		t.Fatal(err)
	}
	before := readBaseline(path)
	if before.of("one") != 2 || before.of("two") != 300 || !strings.HasPrefix(machine(), before.Machine) || len(before.Median) != 3 {
		t.Errorf("%+v", before)
	}
	before.Median["one"] = 4
	var out bytes.Buffer
	x.print(&out, before)
	var got []string
	for l := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(l), " "))
	}
	for _, want := range []string{
		"unit measured spread other /other aim must bound /bound before /before",
		"one s 2 1–3 10 0.20 1 3 0.50 [1] 4 4 0.50 below aim",
		"two MB 300 – – 250 250 1 [1] 300 300 1 MISSED", "größe 7 – – – – – – 7 1", "[1] because.", "said 1",
	} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if err := x.missed(); err == nil || err.Error() != "two: 300 MB, at most 250 is allowed" {
		t.Errorf("%v", err)
	}
	out.Reset()
	var y table
	y.add("a", "ms", 40).aimAt(50)
	y.print(&out, baseline{})
	if got := strings.Fields(out.String()); strings.Join(got[:6], " ") != "Measured unit measured aim a ms" {
		t.Errorf("columns %q", got[:6])
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := frame.Attempt(func() { readBaseline(path) }); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file: %v", err)
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
	fmt.Fprint(s, " cnictl x  nodes 5,000 | live 4 unasked 3\r\n  NODE\r\n▸ ip-10-0-0-1  m5\r\n foot\x1b[4;1H Nodes")
	if p := pictureOf(s); p.selected != "ip-10-0-0-1" || p.status != " Nodes" || !hasAll(5000)(s) || hasAll(5001)(s) || isSwept(s) {
		t.Errorf("%+v", p)
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

// TestScript: the conditions distinguish the screens: none holds before its key is pressed.
func TestScript(t *testing.T) {
	t.Parallel()
	browsing := picture{"ip-1", " Nodes     1–38/412  sort: ip ▼"}
	at := func(status string) picture { return picture{"ip-1", status} }
	for i, tt := range []struct {
		press         press
		before, after picture
	}{
		{moves("j")[0], browsing, picture{"ip-2", browsing.status}},
		{typing("m5")[0], browsing, at(" /        412 of 412")},
		{typing("m5")[2], at(" /m"), at(" /m5")},
		{typing("m5")[3], at(" /m5"), at(" Nodes filter: m5")},
		{noFilter, at(" Nodes filter: m5"), browsing},
		{sorting("i")[0], browsing, at(" sort by  n name")},
		{sorting("i")[1], at(" sort by  n name"), browsing},
		{opened, browsing, at(" Nodes › ip-1")},
		{closed, at(" Nodes › ip-1"), browsing},
	} {
		if tt.press.shows(tt.before, tt.before) || !tt.press.shows(tt.before, tt.after) {
			t.Errorf("%d: %q", i, tt.press.bytes)
		}
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
