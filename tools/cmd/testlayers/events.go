package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"cnictl/tools/gotest"
)

type testID struct{ Package, Test string }

// layerResult counts tests and subtests. A package that fails outside of any test (it does
// not build, TestMain failed, it panicked) counts as one failure.
type layerResult struct {
	name                    string
	target                  bool // of the Makefile: nothing is counted
	passed, failed, skipped int
	packages, cached        int // of the packages, those whose results the go command had
	took, cpu               time.Duration
	times                   []spent
	status                  map[testID]string // pass, fail, skip
	skips, fails            []string          // "package test: reason"
	note                    string            // why the layer did not run
}

// noPackages is the note of a layer that has nothing to run.
const noPackages = "no packages"

// hidden reports the skips, which go test passes over. What a layer leaves out with -short runs in
// another one.
func (r layerResult) hidden(l layer) (problems []string) {
	for _, s := range r.skips {
		if !slices.Contains(l.args, "-short") || !strings.Contains(s, ": "+shortSkip) {
			problems = append(problems, "("+r.name+") must not be skipped: "+s)
		}
	}
	return problems
}

// shortSkip begins the reason of a test that -short skips.
const shortSkip = "skip: -short"

// missing reports the tests that the files of pkgs declare and that gave no result, such as those
// of a TestMain that does not run them. Where something failed, the rest may be its consequence.
func (r layerResult) missing(pkgs []pkg) (problems []string) {
	if r.failed > 0 {
		return nil
	}
	for _, p := range pkgs {
		for _, test := range slices.Concat(p.Tests, p.Fuzz) {
			if r.status[testID{p.ImportPath, test}] == "" {
				problems = append(problems, "("+r.name+") did not run: "+p.ImportPath+" "+test)
			}
		}
	}
	return problems
}

type collector struct {
	layerResult
	output     map[testID][]string
	failedIn   map[string]bool // packages with a failed test
	failures   io.Writer
	buildLines map[string][]string
}

func newCollector(name string, failures io.Writer) *collector {
	return &collector{
		layerResult: layerResult{name: name, status: map[testID]string{}},
		output:      map[testID][]string{}, failedIn: map[string]bool{},
		buildLines: map[string][]string{}, failures: failures,
	}
}

func (c *collector) add(e gotest.Event) {
	id := testID{e.Package, e.Test}
	switch e.Action {
	case "output":
		if strings.HasPrefix(e.Output, "=== ") {
			return // RUN, PAUSE, CONT, NAME
		}
		if e.Test == "" && cachedLine.MatchString(e.Output) {
			c.cached++
			c.times = slices.DeleteFunc(c.times, func(s spent) bool { return s.id.Package == e.Package }) // those of another run
		}
		c.output[id] = append(c.output[id], e.Output)
	case "build-output":
		c.buildLines[e.ImportPath] = append(c.buildLines[e.ImportPath], e.Output)
	case "pass", "fail", "skip":
		c.times = append(c.times, spent{id, time.Duration(e.Elapsed * float64(time.Second))})
		if e.Test == "" {
			c.endPackage(e)
			return
		}
		c.endTest(id, e.Action)
	}
}

func (c *collector) endTest(id testID, action string) {
	// With -count a test ends several times: the worst result counts.
	if worse(action, c.status[id]) {
		c.status[id] = action
	}
	switch action {
	case "pass":
		c.passed++
	case "skip":
		c.skipped++
		c.skips = append(c.skips, fmt.Sprintf("%s %s: %s", id.Package, id.Test, skipReason(c.output[id])))
	case "fail":
		c.failed++
		c.failedIn[id.Package] = true
		c.fail(id, c.output[id])
		fmt.Fprintf(c.failures, "--- %s %s\n%s", id.Package, id.Test, strings.Join(c.output[id], ""))
	}
	delete(c.output, id)
}

// fail lists a failure for the summary: a log of megabytes may follow the first one.
func (c *collector) fail(id testID, lines []string) {
	name := id.Package + " " + id.Test
	reasons := reasonsOf(lines)
	ofSubtest := func(s string) bool { return strings.HasPrefix(s, name+"/") }
	if len(reasons) == 0 && slices.ContainsFunc(c.fails, ofSubtest) {
		return // which says why
	}
	c.fails = append(c.fails, name+": "+cmp.Or(strings.Join(reasons, " | "), "see above"))
}

// reasonsOf picks the lines that most likely say why a test failed: the first and the last three. In the
// output t.Error and t.Log look the same.
func reasonsOf(output []string) (reasons []string) {
	const (
		most = 200 // characters of a line
		last = 3
	)
	for _, l := range output {
		if m := testLine.FindStringSubmatch(l); m != nil && !waitingLine.MatchString(m[1]) {
			reasons = append(reasons, m[1][:min(len(m[1]), most)])
		}
	}
	if len(reasons) > 1+last {
		reasons = append(reasons[:1], reasons[len(reasons)-last:]...)
	}
	return reasons
}

// cachedLine matches how the go command ends a package whose result is from its cache.
var cachedLine = regexp.MustCompile(`^ok  \t\S+\t\(cached\)`)

// testLine matches what a test logs, waitingLine what testenv logs while a test waits.
var (
	testLine    = regexp.MustCompile(`^ +(\S+\.go:\d+: .*)`)
	waitingLine = regexp.MustCompile(`^\S+ waiting for .* since \S+: `)
)

func worse(a, b string) bool {
	rank := []string{"", "pass", "skip", "fail"}
	return slices.Index(rank, a) > slices.Index(rank, b)
}

func (c *collector) endPackage(e gotest.Event) {
	id := testID{Package: e.Package}
	defer delete(c.output, id)
	if e.Action != "fail" {
		return
	}
	if !c.failedIn[e.Package] {
		c.failed++
		c.fail(testID{e.Package, "(package)"}, c.output[id])
		fmt.Fprintf(c.failures, "--- %s (package)\n%s%s", e.Package,
			strings.Join(c.buildLines[e.FailedBuild], ""), strings.Join(c.output[id], ""))
	}
	// After a panic or os.Exit the running test has no end event.
	for open, lines := range c.output {
		if open.Package == e.Package && open.Test != "" {
			c.fails = append(c.fails, e.Package+" "+open.Test+": did not finish")
			fmt.Fprintf(c.failures, "    %s did not finish:\n%s", open.Test, strings.Join(lines, ""))
			delete(c.output, open)
		}
	}
}

// skipReason is the text of t.Skip: the line before "--- SKIP".
func skipReason(lines []string) string {
	for _, l := range slices.Backward(lines) {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "---") && !strings.HasPrefix(l, "===") {
			if _, reason, ok := strings.Cut(l, ".go:"); ok {
				if _, reason, ok = strings.Cut(reason, ": "); ok {
					return reason
				}
			}
			return l
		}
	}
	return "no reason given"
}

func (c *collector) read(r io.Reader) error {
	return gotest.Read(r, c.add, func(line string) { fmt.Fprintln(c.failures, line) })
}

func runLayer(ctx context.Context, o options, l layer, pkgs []pkg) (layerResult, error) {
	c := newCollector(l.name, os.Stdout)
	if len(pkgs) == 0 {
		c.note = noPackages
		return c.layerResult, nil
	}
	if slices.Contains(l.args, "-race") {
		if _, err := exec.LookPath(cmp.Or(os.Getenv("CC"), "gcc")); err != nil {
			c.note = "not run: the race detector needs a C compiler (apt-get install gcc libc6-dev)"
			if o.strict {
				c.failed++
			}
			return c.layerResult, nil
		}
	}
	fmt.Printf("=== %s: %d packages\n", l.name, len(pkgs))
	c.packages = len(pkgs)
	start := time.Now()
	for parallel, some := range l.groups(pkgs) {
		if err := c.goTest(l.command(ctx, o, parallel, some)); err != nil {
			return layerResult{}, err
		}
		if ctx.Err() != nil {
			return layerResult{}, ctx.Err()
		}
	}
	c.took = time.Since(start)
	return c.layerResult, nil
}

// groups returns packages by how many of their tests run at once, those with the most first.
// 0 leaves it to go test.
func (l layer) groups(pkgs []pkg) iter.Seq2[int, []pkg] {
	by := map[int][]pkg{}
	for _, p := range pkgs {
		n := p.Parallel
		if n == 0 && l.lane == waits {
			n = defaultParallel
		}
		by[n] = append(by[n], p)
	}
	return func(yield func(int, []pkg) bool) {
		for _, n := range slices.Backward(slices.Sorted(maps.Keys(by))) {
			if !yield(n, by[n]) {
				return
			}
		}
	}
}

// goTest runs a `go test` command and adds its results.
func (c *collector) goTest(cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("open pipe: %w", err)
	}
	before := c.failed
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	readErr := c.read(out)
	waitErr := cmd.Wait()
	c.cpu += cpuTime(cmd.ProcessState)
	if readErr != nil {
		return fmt.Errorf("read go test output: %w", readErr)
	}
	if waitErr != nil && c.failed == before {
		return fmt.Errorf("go test: %w", waitErr)
	}
	return nil
}

// command returns the `go test` command for some packages of a layer.
func (l layer) command(ctx context.Context, o options, parallel int, pkgs []pkg) *exec.Cmd {
	args := slices.Concat(testArgs, l.args)
	if o.count > 0 { // else the go command may have the result
		args = append(args, fmt.Sprintf("-count=%d", o.count))
	}
	if parallel > 0 {
		args = append(args, fmt.Sprintf("-parallel=%d", parallel))
	}
	if o.nightly {
		args = append(args, "-tags="+nightlyTag)
	}
	if o.run != "" {
		args = append(args, "-run", o.run)
	}
	for _, p := range pkgs {
		args = append(args, p.ImportPath)
	}
	cmd := o.command(ctx, l.lane, "go", args...)
	cmd.Env = append(os.Environ(), l.env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// summarize prints one line per layer and the closing line.
func summarize(w io.Writer, results []layerResult, problems []string) error {
	passed, failed, skipped := 0, len(problems), 0
	for _, r := range results {
		for _, s := range r.skips {
			fmt.Fprintf(w, "skipped (%s) %s\n", r.name, s)
		}
	}
	for _, r := range results {
		for _, f := range r.fails {
			fmt.Fprintf(w, "failed (%s) %s\n", r.name, f)
		}
	}
	for _, p := range problems {
		fmt.Fprintln(w, "problem:", p)
	}
	for _, r := range results {
		took := fmt.Sprintf("(%s, %s CPU)", r.took.Round(100*time.Millisecond), r.cpu.Round(100*time.Millisecond))
		switch {
		case r.target && r.failed == 0:
			fmt.Fprintf(w, "%-12s passed  %s", r.name, took)
		case r.target:
			fmt.Fprintf(w, "%-12s failed  %s", r.name, took)
		default:
			fmt.Fprintf(w, "%-12s %5d passed, %d failed, %d skipped  %s", r.name, r.passed, r.failed, r.skipped, took)
		}
		if r.cached > 0 {
			fmt.Fprintf(w, "  %d of %d packages from go test's cache", r.cached, r.packages)
		}
		if r.note != "" {
			fmt.Fprintf(w, "  %s", r.note)
		}
		fmt.Fprintln(w)
		passed, failed, skipped = passed+r.passed, failed+r.failed, skipped+r.skipped
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 {
		return errFailed
	}
	return nil
}
