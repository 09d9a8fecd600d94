package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/text/terminal"
)

// The fleets as the targets assume them, and the size of the terminal.
const (
	latency = "150ms" // of each stream to a node
	dead    = "0.5%"  // of the nodes never answer
	wide    = 200
	high    = 60

	screenLimit = time.Minute     // for the first rows
	sweepLimit  = 5 * time.Minute // until every node has been read once
	keyLimit    = 3 * time.Second // after which a key counts as lost
)

// fleet starts a fleet in a separate process and returns its kubeconfig and, if sockets were asked
// for, its targets. Its CPU time is not counted, but it shares the machine.
func (r *run) fleet(nodes int, args ...string) (kubeconfig, targets string) {
	dir := must(os.MkdirTemp(r.dir, "fleet-"))
	kubeconfig = filepath.Join(dir, "kubeconfig")
	cmd := exec.CommandContext(r.ctx, filepath.Join(r.bin, "fleetsim"), append([]string{
		"--nodes", strconv.Itoa(nodes), "--kubeconfig", kubeconfig, "--for", longest.String(), // if the bench is killed
	}, args...)...)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = []string{"TMPDIR=" + dir}, os.Stderr, 10*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	out := bufio.NewReader(must(cmd.StdoutPipe())) // a line may hold many targets
	check(cmd.Start())
	r.later(func() error { return errors.Join(cmd.Cancel(), cmd.Wait()) })
	must(out.ReadString('\n'))
	if slices.Contains(args, "--targets") {
		targets = strings.TrimSpace(must(out.ReadString('\n')))
	}
	return kubeconfig, targets
}

func (r *run) living(nodes int) string {
	kubeconfig, _ := r.fleet(nodes, "--latency", latency, "--dead", dead)
	return kubeconfig
}

func (r *run) largest() int {
	if r.quick {
		return 1000
	}
	return 5000
}

// front puts a proxy in front of a fleet's API server, which records when the last page of nodes was served.
func (r *run) front(kubeconfig string) (file string, listed *atomic.Int64) {
	cfg := must(clientcmd.BuildConfigFromFlags("", kubeconfig))
	proxy := httputil.NewSingleHostReverseProxy(must(url.Parse(cfg.Host)))
	proxy.Transport = must(rest.TransportFor(cfg))
	proxy.FlushInterval = -1 // watches
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	listed = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		proxy.ServeHTTP(w, q)
		if q.Method == http.MethodGet && q.URL.Path == "/api/v1/nodes" && q.URL.Query().Get("watch") == "" {
			listed.Store(time.Now().UnixNano())
		}
	}))
	r.later(func() error { server.CloseClientConnections(); server.Close(); return nil }) // watches never end
	file = filepath.Join(filepath.Dir(kubeconfig), "front")
	config := "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], " +
		"contexts: [{name: c, context: {cluster: c}}], current-context: c}"
	check(os.WriteFile(file, fmt.Appendf(nil, config, server.URL), 0o600))
	return file, listed
}

func env(kubeconfig, home string) []string {
	return []string{"PATH=/usr/bin:/bin", "HOME=" + home, "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8",
		"KUBECONFIG=" + kubeconfig}
}

type ended struct {
	stdout, stderr []byte
	wall, cpu      time.Duration
}

func (r *run) cnictl(env []string, args ...string) ended {
	return r.execute(filepath.Join(r.bin, "cnictl"), env, args...)
}

func (r *run) execute(program string, env []string, args ...string) ended {
	const someUnread = 4 // cnictl's exit status when some nodes could not be read
	ctx, cancel := context.WithTimeout(r.ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errOut bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errOut
	begin := time.Now()
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != someUnread {
		check(fmt.Errorf("run %s %v: %w: %s", program, args, err, &errOut))
	}
	return ended{out.Bytes(), errOut.Bytes(), time.Since(begin), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}

// commandStart measures the cost of starting any command, and of reading one node.
func (r *run) commandStart() {
	kubeconfig, targets := r.fleet(1, "--targets", r.dir)
	env := env(kubeconfig, r.dir)
	for _, c := range []struct {
		name string
		aim  float64 // ms
		args []string
	}{
		{"cnictl version, CPU", 15, []string{"version"}},
		{"cnictl nodes, one node through the API server, CPU", 60, []string{"nodes"}},
		{"cnictl nodes, one node by its socket, CPU", 60, []string{"nodes", "--targets", targets}},
	} {
		var cpu []time.Duration
		for range r.part(20) {
			cpu = append(cpu, r.cnictl(env, c.args...).cpu)
		}
		r.add(c.name+", least", "ms", milliseconds(slices.Min(cpu))).aimAt(c.aim)
		r.add("the same, median", "ms", milliseconds(median(cpu))).aimAt(c.aim)
	}
	least := time.Hour
	for range r.part(20) {
		sum, _ := initTime(r.cnictl(append([]string{"GODEBUG=inittrace=1"}, env...), "version").stderr)
		least = min(least, sum)
	}
	r.add("package initialisation, least", "ms", milliseconds(least)).aimAt(12)
}

// tui starts the screens in a separate home directory, because they save filters and sort orders.
func (r *run) tui(kubeconfig string) *terminal.Terminal {
	home := must(os.MkdirTemp(r.dir, "home-"))
	o := terminal.Options{Columns: wide, Rows: high, Env: env(kubeconfig, home)}
	t := must(terminal.Start(r.ctx, o, filepath.Join(r.bin, "cnictl"), "tui"))
	r.later(t.Close)
	return t
}

func (r *run) first() {
	for _, n := range slices.Compact([]int{1000, r.largest()}) {
		check(r.scope(func() {
			front, listed := r.front(r.living(n))
			t := r.tui(front)
			check(t.Await(r.ctx, screenLimit, hasRows))
			shown := time.Since(t.Started)
			check(t.Await(r.ctx, screenLimit, hasAll(n)))
			all, cpu := time.Since(t.Started), frame.CPU(t.Process().Pid)
			list := time.Unix(0, listed.Load()).Sub(t.Started)
			r.add(fmt.Sprintf("%d nodes: exec to first rows", n), "s", shown.Seconds()).aimAt(map[int]float64{1000: 0.5, 5000: 0.7}[n])
			r.add("exec to LIST answered", "s", list.Seconds())
			r.add("LIST answered to all rows", "s", max(all-list, 0).Seconds()).aimAt(2)
			r.add("CPU until then", "s", cpu.Seconds()).beside(map[int]float64{1000: 0.48, 5000: 6.7}[n])
		}))
	}
}

func (r *run) sweep() {
	nodes := r.largest()
	e := r.cnictl(env(r.living(nodes), r.dir), "nodes", "--concurrency", "32", "-o", "custom-columns=NODE:.metadata.name,STATE:.state")
	states := strings.Fields(string(e.stdout))[2:] // NODE STATE, then both of each
	if len(states) != 2*nodes {
		check(fmt.Errorf("cnictl lists %d of %d nodes", len(states)/2, nodes))
	}
	unread := len(slices.DeleteFunc(states, func(s string) bool { return s == "live" })) - nodes
	r.add(fmt.Sprintf("cnictl nodes, %d nodes, 32 at a time", nodes), "s", e.wall.Seconds()).aimAt(30)
	r.add("the same, CPU", "s", e.cpu.Seconds())
	r.add("the same, nodes not read (0.5 % never answer)", "", float64(unread))
}

// watched also returns the share of a core that a process used meanwhile, in percent.
func (r *run) watched(pid int, do func()) (time.Duration, float64) {
	before, begin := frame.CPU(pid), time.Now()
	do()
	took := time.Since(begin)
	return took, 100 * float64(frame.CPU(pid)-before) / float64(max(took, time.Millisecond))
}

// screen measures the screens with a changing fleet: a sweep, keys, idle time.
func (r *run) screen() {
	nodes := r.largest()
	t := r.tui(r.living(nodes))
	pid := t.Process().Pid
	check(t.Await(r.ctx, screenLimit, hasAll(nodes)))
	took, share := r.watched(pid, func() { check(t.Await(r.ctx, sweepLimit, isSwept)) })
	r.add(fmt.Sprintf("screen, %d nodes: first sweep", nodes), "s", took.Seconds()).aimAt(30)
	r.add("CPU during it", "% of a core", share).aimAt(30)
	r.add("peak memory after it", "MB", must(frame.Memory(pid, "VmHWM"))/1e6).aimAt(250)

	frames, drawn := t.Counts()
	var keys typed
	took, share = r.watched(pid, func() { keys = r.typeKeys(t, r.part(2000)) })
	framesNow, drawnNow := t.Counts()
	r.add(fmt.Sprintf("key to frame, %d keys, p50", len(keys.all)), "ms", quantile(keys.all, 0.5))
	r.add("the same, p90", "ms", quantile(keys.all, 0.9))
	r.add("the same, p99", "ms", quantile(keys.all, 0.99)).aimAt(50)
	r.add("the same, most", "ms", quantile(keys.all, 1))
	r.add("the same, keys lost", "", float64(keys.lost)).aimAt(0)
	r.add("key to echo of cat meanwhile, p50", "ms", quantile(keys.echoes, 0.5))
	r.add("the same, p99", "ms", quantile(keys.echoes, 0.99))
	r.add("CPU while keys are typed", "% of a core", share)
	frames = framesNow - frames
	r.note("%d frames of %d bytes in the mean, in %.0f s.%s", frames, (drawnNow-drawn)/int64(max(frames, 1)), took.Seconds(), keys.reason)

	paused := func(s *terminal.Screen) bool { return strings.Contains(s.Line(0), "PAUSED") }
	must(t.Expect(r.ctx, "p", keyLimit, paused))
	r.idle(t, "idle CPU, paused")
	must(t.Expect(r.ctx, "p", keyLimit, func(s *terminal.Screen) bool { return !paused(s) }))
	check(t.Press("\x1b[O")) // the focus is lost
	r.idle(t, "idle CPU, without the focus")
}

// idle measures the cost of an idle screen, after work in progress has ended.
func (r *run) idle(t *terminal.Terminal, name string) {
	r.pause(3 * time.Second)
	_, share := r.watched(t.Process().Pid, func() { r.pause(r.lasting(20 * time.Second)) })
	r.add(name, "% of a core", share).aimAt(3).beside(100)
}

func (r *run) unread() {
	kubeconfig, _ := r.fleet(r.largest(), "--no-daemon", "100%", "--churn", "-1s")
	t := r.tui(kubeconfig)
	check(t.Await(r.ctx, screenLimit, hasAll(r.largest())))
	r.idle(t, "idle CPU, nothing due")
}

// view runs the Go benchmarks of the root's View, which print eks-node-viewer's figure beside
// theirs (docs/performance.md has their aims).
func (r *run) view() {
	times := fmt.Sprintf("-benchtime=%dx", r.part(200))
	cmd := exec.CommandContext(r.ctx, "go", "test", "-run=^$", "-bench=^Benchmark(Change|Key)$", "-benchmem", times, "./tui/app")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = r.source, r.out, r.progress, 10*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGINT) } // it stops its children
	check(cmd.Run())
}

// press is one key, and a condition that the screen meets after it. The condition does not
// hold before the key, and new data cannot cause it: neither the row with the cursor nor the
// bottom line changes on its own.
type press struct {
	bytes string
	shows func(before, now picture) bool
}

// picture is the part of the screen that conditions check: the name in the row with the cursor, "" if
// there is none, and the line above the hints.
type picture struct{ selected, status string }

func pictureOf(s *terminal.Screen) (p picture) {
	p.status = s.Line(-2)
	for y := s.Height() - 1; y > 0; y-- {
		if name, ok := strings.CutPrefix(s.Line(y), "▸"); ok {
			if f := strings.Fields(strings.TrimPrefix(name, "●")); len(f) > 0 {
				p.selected = f[0]
			}
		}
	}
	return p
}

func hasRows(s *terminal.Screen) bool { return strings.HasPrefix(pictureOf(s).selected, "ip-") }

// hasAll reports whether the header counts all nodes of a fleet.
func hasAll(nodes int) func(*terminal.Screen) bool {
	want := fmt.Sprintf("nodes %d,%03d", nodes/1000, nodes%1000)
	return func(s *terminal.Screen) bool { return strings.Contains(s.Line(0), want) && hasRows(s) }
}

var headerCounts = regexp.MustCompile(`(nodes|live|partial|down|` + fleet.WordNoDaemon + `) ([0-9,]+)`)

// isSwept reports whether the header counts all nodes as read or not readable.
func isSwept(s *terminal.Screen) bool {
	all, found := 0, 0
	for _, m := range headerCounts.FindAllStringSubmatch(s.Line(0), -1) {
		n := must(strconv.Atoi(strings.ReplaceAll(m[2], ",", "")))
		if m[1] == "nodes" {
			all = n
		} else {
			found += n
		}
	}
	return all > 0 && found == all
}

func moves(keys ...string) (out []press) {
	for _, k := range keys {
		out = append(out, press{k, func(before, now picture) bool { return now.selected != "" && now.selected != before.selected }})
	}
	return out
}

// shows is a key after which the status line has a text, or no longer does. A text that begins with
// a space is at the line's begin.
func shows(bytes, text string, does bool) press {
	return press{bytes, func(_, now picture) bool {
		has := strings.Contains(now.status, text) && (text[0] != ' ' || strings.HasPrefix(now.status, text))
		return has == does
	}}
}

// typing types a filter, letter by letter, and keeps it.
func typing(text string) []press {
	out := []press{shows("/", " /", true)}
	for i := range text {
		out = append(out, shows(text[i:i+1], " /"+text[:i+1], true))
	}
	return append(out, shows("\r", " /", false))
}

func sorting(letter string) []press {
	return []press{shows("s", " sort by", true), shows(letter, " sort by", false)}
}

// script is a user's session: up and down the list, filters, sort orders, a node.
var script = slices.Concat(
	moves("j", "j", "j", "j", "j", "k", "k", "j", "j", "j"),
	moves(pageDown, pageDown, "j", "j", pageUp, pageDown, pageDown, halfDown, halfDown, halfUp),
	typing("warm>1"), moves("j", "j", "k", "G", "k", "k", "g"), []press{noFilter},
	sorting("i"), moves("j", "j", "G", "k", "k", "k", "g", "j"),
	[]press{opened, closed}, moves("j", "k"),
	typing("m5"), moves("j", pageDown, "j", "k"), []press{noFilter},
	sorting("n"), moves("G", "k", "k", pageUp, "g", "j", "j"),
	sorting("w"), moves("j", "j", "j", "k", "G", "g"),
	[]press{opened, closed},
	sorting("s"), moves("j", "G", "k", "g"),
)

const pageDown, pageUp, halfDown, halfUp = "\x1b[6~", "\x1b[5~", "\x04", "\x15"

var (
	noFilter = shows("\x1b[27u", "filter: ", false) // esc, from terminals that distinguish it from the start of a sequence
	opened   = shows("\r", "› ", true)
	closed   = shows("h", "› ", false)
)

type typed struct {
	all    []time.Duration
	lost   int             // no picture within keyLimit, which is the time they count with
	reason string          // of the first lost key
	echoes []time.Duration // of the minimal program, one after each key
}

// typeKeys writes keys one by one. Before each key it pauses for a random time: the
// program draws at a fixed rate, so a key right after a picture would always wait for
// a whole frame, and one right before it never.
//
// After each key the same is measured with a program that only echoes, to know the
// machine's share.
func (r *run) typeKeys(t *terminal.Terminal, n int) typed {
	echo := must(terminal.Start(r.ctx, terminal.Options{Columns: wide, Rows: high, Raw: true}, "/bin/cat"))
	defer echo.Kill()
	rnd := rand.New(rand.NewPCG(1, 2)) // the same sequence every time
	var out typed
	for i := range n {
		p := script[i%len(script)]
		r.pause(time.Duration(rnd.Int64N(int64(50 * time.Millisecond))))
		var before picture
		t.Find(func(s *terminal.Screen) string { before = pictureOf(s); return "" })
		took, err := t.Expect(r.ctx, p.bytes, keyLimit, func(s *terminal.Screen) bool { return p.shows(before, pictureOf(s)) })
		check(r.ctx.Err())
		if err != nil {
			took = keyLimit
			if out.lost++; out.lost == 1 {
				out.reason = fmt.Sprintf("\nThe first key that was lost: key %d, %q: %v", i, p.bytes, err)
			}
		}
		out.all = append(out.all, took)
		_, already := echo.Counts()
		out.echoes = append(out.echoes, must(echo.AwaitBytes(r.ctx, "x", screenLimit, already)))
	}
	return out
}

// vitals are a program's resources at one moment, the first from its diagnostics.
type vitals struct {
	goroutines, sockets int
	memory              float64 // resident bytes
}

// soak watches a changing fleet for a long time: rounds of keys and pauses, reading the vitals
// after each. They must stay within bounds and must not grow.
func (r *run) soak() {
	t := r.tui(r.living(r.largest()))
	check(t.Await(r.ctx, sweepLimit, hasAll(r.largest())))
	check(t.Await(r.ctx, sweepLimit, isSwept))
	var keys []time.Duration
	var seen []vitals
	for end := time.Now().Add(r.lasting(r.lasts)); len(seen) < 3 || time.Now().Before(end); r.pause(10 * time.Second) {
		typed := r.typeKeys(t, soakKeys)
		v := r.readVitals(t)
		keys, seen = append(keys, typed.all...), append(seen, v)
		r.say("soak %4.0f s: %d goroutines, %d sockets, %.0f MB, key to frame p99 %.0f ms%s", time.Since(t.Started).Seconds(),
			v.goroutines, v.sockets, v.memory/1e6, quantile(typed.all, 0.99), typed.reason)
	}
	r.soaked(keys, seen)
}

const soakKeys = 100 // per round: about the script once

// soaked adds the rows: the most of each count in the first and in the last third. A stable count
// varies: streams come and go, and those of a closed tunnel linger for seconds.
func (r *run) soaked(keys []time.Duration, seen []vitals) {
	most := func(of []vitals) (m vitals) {
		for _, v := range of {
			m = vitals{max(m.goroutines, v.goroutines), max(m.sockets, v.sockets), max(m.memory, v.memory)}
		}
		return m
	}
	third := len(seen) / 3
	first, last := most(seen[:third]), most(seen[len(seen)-third:])
	slack := func(count int) float64 { return float64(count + 32 + count/4) }
	title := fmt.Sprintf("soak, %d nodes, %d rounds of %d keys: most resident memory", r.largest(), len(seen), soakKeys)
	r.add(title, "MB", most(seen).memory/1e6).atMost(250)
	r.add("the same, most goroutines in the first third", "", float64(first.goroutines))
	r.add("the same, most goroutines in the last third", "", float64(last.goroutines)).atMost(slack(first.goroutines))
	r.add("the same, most sockets in the last third", "", float64(last.sockets)).atMost(slack(first.sockets))
	r.add("the same, key to frame, p99", "ms", quantile(keys, 0.99)).atMost(50)
}

func (r *run) readVitals(t *terminal.Terminal) (v vitals) {
	const ctrlG = "\x07"
	must(t.Expect(r.ctx, ctrlG, keyLimit, v.diagnosed))
	must(t.Expect(r.ctx, "h", keyLimit, func(s *terminal.Screen) bool { return !new(vitals).diagnosed(s) && hasRows(s) }))
	v.sockets, v.memory = sockets(t.Process().Pid), must(frame.Memory(t.Process().Pid, "VmRSS"))
	return v
}

// diagnosed reads "goroutines 142" from the screen, and reports whether it is shown.
func (v *vitals) diagnosed(s *terminal.Screen) bool {
	_, after, _ := strings.Cut(strings.ReplaceAll(s.String(), ",", ""), "goroutines ")
	_, err := fmt.Sscan(after, &v.goroutines)
	return err == nil
}

// planted are the shares of nodes whose EC2 calls fail, and the finding expected for each.
var planted = []struct {
	flag, share, code string
	nodes             int
}{
	{"--full-subnet", "2%", "ip/subnet-exhausted", 20}, {"--throttled", "1.2%", "aws/throttled", 12}, {"--unauthorized", "0.8%", "aws/iam", 8},
}

const upstreamShare = "40%"

func (r *run) diagnose(kubeconfig string, args ...string) (report document.DoctorReport, e ended) {
	e = r.cnictl(env(kubeconfig, r.dir), append([]string{"doctor", "-o", "json", "--exit-zero"}, args...)...)
	check(json.Unmarshal(e.stdout, &report))
	return report, e
}

// nodesByCode counts the nodes per code, for findings above info.
func nodesByCode(report document.DoctorReport) map[string]int {
	nodes := map[string][]string{}
	for _, f := range slices.Concat(report.Findings, report.Explained) {
		if f.Severity != string(document.SeverityInfo) {
			nodes[f.Code] = append(nodes[f.Code], f.Nodes...)
		}
	}
	out := map[string]int{}
	for code, names := range nodes {
		out[code] = len(slices.Compact(slices.Sorted(slices.Values(names))))
	}
	return out
}

func (r *run) doctor() {
	const nodes, deadNodes = 1000, 5
	args := []string{"--latency", latency, "--dead", dead, "--upstream", upstreamShare, "--churn", "-1s", "--sound"}
	for _, p := range planted {
		args = append(args, p.flag, p.share)
	}
	kubeconfig, _ := r.fleet(nodes, args...)
	report, e := r.diagnose(kubeconfig, "--v=1")
	requests := regexp.MustCompile(`(\d+) requests to the API server`).FindSubmatch(e.stderr)
	if requests == nil {
		check(fmt.Errorf("no count of requests in %q", e.stderr))
	}
	r.add(fmt.Sprintf("cnictl doctor, %d nodes, %s a stream, %s dead", nodes, latency, dead), "s", e.wall.Seconds()).atMost(60)
	r.add("the same, CPU", "s", e.cpu.Seconds())
	r.add("the same, requests to the API server", "", must(strconv.ParseFloat(string(requests[1]), 64)))
	unread := 0
	for _, m := range report.NotChecked {
		if m.Source == "intro.enis" {
			unread += len(m.Nodes)
		}
	}
	var err error
	exactly := func(what string, got, want int) {
		if r.add("the same, "+what, "", float64(got)); got != want {
			err = errors.Join(err, fmt.Errorf("%s: %d, want %d", what, got, want))
		}
	}
	exactly("nodes that never answer", unread, deadNodes)
	got := nodesByCode(report)
	for _, p := range planted {
		exactly(fmt.Sprintf("nodes with %s (%d planted)", p.code, p.nodes), got[p.code], p.nodes)
		delete(got, p.code)
	}
	if len(got) > 0 {
		err = errors.Join(err, fmt.Errorf("found besides: %v", got))
	}
	check(err)
}

func (r *run) sound() {
	const nodes = 40
	kubeconfig, _ := r.fleet(nodes, "--upstream", upstreamShare, "--churn", "10s", "--sound")
	var walls []time.Duration
	findings := 0
	for end := time.Now().Add(r.lasting(r.lasts)); len(walls) == 0 || time.Now().Before(end); {
		report, e := r.diagnose(kubeconfig, "--interval", "2s")
		walls = append(walls, e.wall)
		for _, f := range report.Findings {
			if f.Severity != string(document.SeverityInfo) {
				findings++
				r.say("run %d: %s on %v: %s: %+v", len(walls), f.Code, f.Nodes, f.Summary, f.Evidence)
			}
		}
	}
	r.add(fmt.Sprintf("cnictl doctor on %d sound nodes whose pods come and go, runs", nodes), "", float64(len(walls)))
	r.add("the same, findings above info", "", float64(findings)).atMost(0)
	r.add("the same, median", "s", median(walls).Seconds())
	r.add("the same, longest", "s", slices.Max(walls).Seconds())
}

func (r *run) archive() {
	name := filepath.Join(r.dir, "eks_i-0fa4e000000000001_2026-11-21_0300-UTC_0.7.9.tar.gz")
	file := must(os.Create(name))
	defer file.Close()
	writeArchive(file, 1e9)
	size := float64(must(file.Stat()).Size()) / 1e6
	cnictl := filepath.Join(r.bin, "cnictl")
	e := r.execute(filepath.Join(r.bin, "floor"), append(env("", r.dir), peakVar+"="+cnictl+" doctor -o json --exit-zero --bundle "+name))
	r.add(fmt.Sprintf("cnictl doctor --bundle, 1.0 GB of logs in an archive of %.0f MB", size), "s", e.wall.Seconds()).atMost(20)
	r.add("the same, CPU", "s", e.cpu.Seconds()).aimAt(12)
	r.add("the same, memory", "MB", float64(readPeak(e.stderr))/1e6).atMost(100)
}

// writeArchive writes an archive as of a node with long logs. Each log has its share of the bytes,
// and may end in the middle of a line.
func writeArchive(to io.Writer, size int64) {
	zipped := must(gzip.NewWriterLevel(to, gzip.BestSpeed))
	archive := tar.NewWriter(zipped)
	end := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, log := range []struct {
		name    string
		percent int64
		stamp   string
		lines   []string // of the stamp and a number
	}{
		{"./var_log/aws-routed-eni/ipamd.log", 60, "2006-01-02T15:04:05.000Z", []string{
			`{"level":"debug","ts":"%s","caller":"ipamd/ipamd.go:697","msg":"IP stats - total IPs: 28, assigned IPs: %[4]d, cooldown IPs: 0"}`,
			`{"level":"info","ts":"%s","caller":"rpc/rpc.pb.go:1016","msg":"Received AddNetwork for NS ` +
				`/var/run/netns/cni-%08[2]x-5a8e, Sandbox %064[2]x, ifname eth0"}`,
			`{"level":"debug","ts":"%s","caller":"datastore/data_store.go:714","msg":"assignPodIPv4AddressUnsafe: Assign IP ` +
				`10.0.%[3]d.%[4]d to sandbox aws-cni/%064[2]x/eth0"}`,
			`{"level":"debug","ts":"%s","caller":"ipamd/ipamd.go:1371","msg":"Reconcile and skip primary IP 10.0.%[3]d.%[4]d on ENI eni-%017[2]x"}`,
		}},
		{"./var_log/aws-routed-eni/plugin.log", 20, "2006-01-02T15:04:05.000Z", []string{
			`{"level":"info","ts":"%s","caller":"routed-eni-cni-plugin/cni.go:129","msg":"Received add response from ipamd: Success:true ` +
				`IPAddress:10.0.%[3]d.%[4]d DeviceNumber:0"}`,
		}},
		{"./kubelet/kubelet.log", 20, "Jan 02 15:04:05", []string{
			`%s ip-10-0-0-10 kubelet[3412]: I1121 %[1]s    3412 kubelet.go:2421] "SyncLoop (PLEG): event for pod" ` +
				`pod="shop/web-%08[2]x" event={"Type":"ContainerStarted"}`,
		}},
	} {
		left := size * log.percent / 100
		check(archive.WriteHeader(&tar.Header{Name: log.name, Mode: 0o644, Size: left, ModTime: end, Format: tar.FormatPAX}))
		out := bufio.NewWriterSize(archive, 1<<20)
		var line []byte
		for i := 0; left > 0; i++ {
			at := end.Add(-12*time.Hour + time.Duration(i)*10*time.Millisecond)
			line = append(fmt.Appendf(line[:0], log.lines[i%len(log.lines)], at.Format(log.stamp), i, i/256%256, i%256), '\n')
			n := min(left, int64(len(line)))
			must(out.Write(line[:n]))
			left -= n
		}
		check(out.Flush())
	}
	check(errors.Join(archive.Close(), zipped.Close()))
}
