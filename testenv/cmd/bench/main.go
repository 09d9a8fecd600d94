// Command bench measures; tests never do. The nodes and fleets are simulated; EC2, the metadata
// service and kube-apiserver are real servers on the wire, the kernel is the machine's, and the
// programs are the built ones. Milliseconds don't transfer between machines; ratios within one run
// do, so contenders take turns.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/node"
)

const usage = `bench measures the CNI and cnictl. It exits with 1 if something fails or a required figure is missed.

Usage: bench [SUITE] [--phases LIST] [--quick] [--keep] [--bin DIR] [flags of the suite]

  --phases L   comma-separated list of the suite's phases (default: all but those with a *)
  --quick      a tenth of everything: checks that it runs, measures nothing useful
  --keep       keep the files and print their directory
  --bin DIR    where the programs of "make build reference" are (default: beside bench)

pods (default): ADD and DEL beside a process floor and the reference plugins [--rounds N: pods one at a time (200)]
  start, sequential, ten, thirty, crowd, connections, flood, spoofing
scale: the daemon's start, growth, memory and CPU beside upstream's [--runs N: of each growth (3)]
  [--calls: print each EC2 request of the median run] [--baseline FILE: compare with it] [--write: write it instead]
  start, scale, faults, bound, load, restore
tui: cnictl and its screens before a simulated fleet [--for D: how long a soak lasts (10m)] [--source DIR: the module (.)]
  first (screen), sweep (by cnictl nodes), screen (sweep, keys, cost at rest), start (of commands), rest (nothing due),
  view (one frame, by go test), soak* (keys and pauses), doctor* (finds exactly what is planted in 1,000 nodes),
  archive* (1 GB of logs), doctor-soak* (nothing found in a healthy fleet)
`

type phase struct {
	name string // a * says that it runs only if it is asked for
	run  func(*run)
}

var suites = map[string]struct {
	setUp  func(*run) // nil: it needs no simulated nodes
	phases []phase
}{
	"pods": {(*run).startLab, []phase{
		{"start", (*run).programStart}, {"sequential", (*run).sequential},
		{"ten", func(r *run) { r.parallel(4, r.part(50), 10, "ADD/s 0.75 of the floor") }},
		{"thirty", func(r *run) { r.parallel(1, r.part(400), 30, "p99 1.5 of the floor") }},
		{"crowd", (*run).crowd}, {"connections", (*run).connections}, {"flood", (*run).flood}, {"spoofing", (*run).spoofing},
	}},
	"scale": {(*run).startAPI, []phase{
		{"start", (*run).start}, {"scale", (*run).scale}, {"faults", (*run).faults}, {"bound", (*run).bound},
		{"load", (*run).load}, {"restore", (*run).restore},
	}},
	"tui": {nil, []phase{
		{"first", (*run).first}, {"sweep", (*run).sweep}, {"screen", (*run).screen}, {"start", (*run).commandStart},
		{"rest", (*run).unread}, {"view", (*run).view},
		{"soak*", (*run).soak}, {"doctor*", (*run).doctor}, {"archive*", (*run).archive}, {"doctor-soak*", (*run).sound},
	}},
}

type options struct {
	suite                     string
	phases                    []string // empty: all usual ones
	quick, keep, calls, write bool
	rounds, runs              int
	lasts                     time.Duration // a soak
	baseline, source, bin     string
}

// longest is how long a simulated fleet runs. A soak must be shorter.
const longest = time.Hour

func parse(args []string) (o options, err error) {
	o.suite = "pods"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		o.suite, args = args[0], args[1:]
	}
	if len(suites[o.suite].phases) == 0 {
		return o, fmt.Errorf("suite %q is not pods, scale or tui", o.suite)
	}
	var fs flag.FlagSet
	fs.Func("phases", "", func(list string) error { o.phases = strings.Split(list, ","); return nil })
	for name, into := range map[string]*bool{"quick": &o.quick, "keep": &o.keep, "calls": &o.calls, "write": &o.write} {
		fs.BoolVar(into, name, false, "")
	}
	fs.IntVar(&o.rounds, "rounds", 200, "")
	fs.IntVar(&o.runs, "runs", 3, "")
	fs.DurationVar(&o.lasts, "for", 10*time.Minute, "")
	fs.StringVar(&o.baseline, "baseline", "", "")
	fs.StringVar(&o.source, "source", ".", "")
	fs.StringVar(&o.bin, "bin", "", "")
	if err := frame.Parse(&fs, args); err != nil {
		return o, err
	}
	if o.rounds < 1 || o.runs < 1 || o.lasts <= 0 || o.lasts > longest/2 {
		return o, fmt.Errorf("--rounds and --runs must be at least 1, --for a time up to %v", longest/2)
	}
	if o.write && o.baseline == "" {
		return o, errors.New("--write needs --baseline FILE")
	}
	var known []string
	for _, p := range suites[o.suite].phases {
		known = append(known, strings.TrimSuffix(p.name, "*"))
	}
	for _, p := range o.phases {
		if !slices.Contains(known, p) {
			return o, fmt.Errorf("--phases: %q is not one of %s", p, strings.Join(known, ", "))
		}
	}
	o.bin, err = frame.Bin(o.bin)
	return o, err
}

var program = frame.Program[options]{Name: "bench", Usage: usage, Parse: parse, Do: bench}

func main() {
	node.MaybeAgent()
	if len(os.Args) == 2 && os.Args[1] == inNode {
		fmt.Fprintln(os.Stderr, "bench:", serveInNode())
		os.Exit(1)
	}
	os.Exit(program.Main())
}

type run struct {
	options
	table
	ctx           context.Context
	out, progress io.Writer
	begin         time.Time
	dir           string           // for all files
	ends          []func() error   // what the current scope undoes
	lab           *lab             // of the suite pods
	api           *cluster.Cluster // of the suite scale: only its API server
	sites         int              // number made so far, for separate directories

	mu     sync.Mutex // guards samples and failed while commands run in parallel
	failed []error    // commands of plugins
}

var check = frame.Check

func must[T any](v T, err error) T {
	check(err)
	return v
}

// scope runs f and then what f registered with later, the last first.
func (r *run) scope(f func()) error {
	outer := r.ends
	r.ends = nil
	err := frame.Attempt(f)
	for _, end := range slices.Backward(r.ends) {
		err = errors.Join(err, end())
	}
	r.ends = outer
	return err
}

func (r *run) later(end func() error) { r.ends = append(r.ends, end) }

// bench runs a suite's phases and prints what they measured.
func bench(ctx context.Context, o options, out, progress io.Writer) error {
	r := &run{options: o, ctx: ctx, out: out, progress: progress, begin: time.Now()}
	return r.scope(func() {
		if suites[o.suite].setUp != nil {
			check(frame.Enter())
		}
		var before baseline
		if o.baseline != "" && !o.write {
			before = readBaseline(o.baseline)
		}
		r.dir = must(os.MkdirTemp("", "bench-"))
		if r.keep {
			r.say("files are in %s", r.dir)
		} else {
			r.later(func() error { return os.RemoveAll(r.dir) })
		}
		fmt.Fprintf(out, "%s, load before %s\n", machine(), load())
		err := r.scope(r.measure)
		if len(r.rows) > 0 {
			r.print(out, before)
		}
		fmt.Fprintf(out, "\n%.0f s, load after %s\n", time.Since(r.begin).Seconds(), load())
		check(errors.Join(err, context.Cause(ctx)))
		if o.write {
			r.writeBaseline(o.baseline)
		}
		check(r.missed())
	})
}

func (r *run) measure() {
	s := suites[r.suite]
	if s.setUp != nil {
		s.setUp(r)
	}
	for _, p := range s.phases {
		name, special := strings.CutSuffix(p.name, "*")
		if len(r.phases) == 0 && !special || slices.Contains(r.phases, name) {
			r.say("%s", name)
			if err := r.scope(func() { p.run(r) }); err != nil {
				check(fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	if n := len(r.failed); n > 0 {
		check(fmt.Errorf("%d commands failed, first: %w", n, r.failed[0]))
	}
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.progress, "%4.0f s  "+format+"\n", append([]any{time.Since(r.begin).Seconds()}, args...)...)
}

func (r *run) part(n int) int {
	if r.quick {
		return max(n/10, 1)
	}
	return n
}

func (r *run) lasting(d time.Duration) time.Duration { return time.Duration(r.part(int(d))) }

func (r *run) pause(d time.Duration) {
	frame.Pause(r.ctx, d)
	check(r.ctx.Err())
}

func (r *run) until(what string, ok func() bool) {
	ctx, cancel := context.WithTimeout(r.ctx, 2*time.Minute)
	defer cancel()
	for !ok() {
		if frame.Pause(ctx, 10*time.Millisecond); ctx.Err() != nil {
			check(fmt.Errorf("wait for %s: %w", what, ctx.Err()))
		}
	}
}

func machine() string {
	var u unix.Utsname
	check(unix.Uname(&u))
	release, _, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), "-") // the rest is the distribution's
	return fmt.Sprintf("%d CPUs, Linux %s, %s", runtime.NumCPU(), release, runtime.Version())
}

func load() string {
	return string(bytes.Join(bytes.Fields(must(os.ReadFile("/proc/loadavg")))[:3], []byte(" ")))
}

func sockets(pid int) (n int) {
	for _, fd := range must(filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))) {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:") { // it may be closed by now
			n++
		}
	}
	return n
}
