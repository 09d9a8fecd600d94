package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/tools/gotest"
)

// What became of a mutant.
const (
	killed     = "killed"
	survived   = "SURVIVED"
	notApplied = "DOES NOT APPLY"
	notBuilt   = "DOES NOT COMPILE"
	notRun     = "NO TEST RAN"
)

// result says which tests killed a mutant.
type result struct {
	mutant
	Status  string
	Killers map[string][]string `json:",omitempty"` // tests by package; subtests count as their test
	Why     string              `json:",omitempty"`
	Seconds float64
}

type runner struct {
	root    string
	timeout time.Duration
	workers int
	log     io.Writer
	results *store
}

// run puts each mutant into a copy of the tree and runs its tests. Comparisons with golden
// files pass, so that what kills a mutant is a test that says what is right. Tests that fail
// without any mutant kill none, and are problems.
func (r *runner) run(ctx context.Context, all []mutant, golden mutant) (results []result, problems []string, err error) {
	dir := filepath.Join(r.root, ".cache", "mutants")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	if dir, err = os.MkdirTemp(dir, "trees-"); err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	blind, err := golden.apply(r.root)
	if err != nil {
		return nil, nil, fmt.Errorf("golden: %w", err)
	}
	trees := make([]tree, r.workers)
	for i := range trees {
		t, err := copyTree(ctx, r.root, filepath.Join(dir, fmt.Sprint(i)))
		if err == nil {
			_, err = t.put(blind)
		}
		if err != nil {
			return nil, nil, err
		}
		trees[i] = t
	}
	results = make([]result, len(all))
	var left []int
	for i, m := range all {
		var ok bool
		if results[i], ok = r.results.get(m); !ok {
			left = append(left, i)
		}
	}
	sound, problems, err := r.sound(ctx, trees, all, left)
	if err != nil {
		return nil, nil, err
	}
	next, done := make(chan int), 0
	var mu sync.Mutex // of done, log, results
	var wg sync.WaitGroup
	for _, t := range trees {
		wg.Go(func() {
			for i := range next {
				got := r.one(ctx, t, all[i], sound)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				done++
				results[i] = got
				r.results.add(got)
				fmt.Fprintf(r.log, "%d/%d %s\n", done, len(left), got)
				mu.Unlock()
			}
		})
	}
	for _, i := range left {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return results, problems, ctx.Err()
}

// sound runs the tests without a mutant, and returns those that fail.
func (r *runner) sound(ctx context.Context, trees []tree, all []mutant, left []int) (fail map[string][]string, problems []string, err error) {
	runs := map[string][]string{} // packages by selection of tests
	for _, i := range left {
		runs[all[i].Run] = append(runs[all[i].Run], all[i].Packages...)
	}
	fail = map[string][]string{}
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		packages := slices.Compact(slices.Sorted(slices.Values(runs[run])))
		fmt.Fprintf(r.log, "without a mutant: %s %s\n", strings.Join(packages, " "), run)
		o := r.test(ctx, trees[0], packages, run, r.workers)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if o.broken != "" {
			return nil, nil, fmt.Errorf("go test without a mutant: %s", o.broken)
		}
		for pkg, tests := range o.failed {
			fail[pkg] = append(fail[pkg], tests...)
			problems = append(problems, fmt.Sprintf("without a mutant these fail in %s: %s", pkg, strings.Join(tests, ", ")))
		}
	}
	return fail, problems, nil
}

func (r *runner) one(ctx context.Context, t tree, m mutant, fail map[string][]string) (out result) {
	start := time.Now()
	out.mutant = m
	defer func() { out.Seconds = time.Since(start).Seconds() }()
	c, err := m.apply(t.dir)
	if err != nil {
		out.Status, out.Why = notApplied, err.Error()
		return out
	}
	undo, err := t.put(c)
	if err != nil {
		out.Status, out.Why = notRun, err.Error()
		return out
	}
	o := r.test(ctx, t, m.Packages, m.Run, 1)
	if err := undo(); err != nil {
		out.Status, out.Why = notRun, err.Error()
		return out
	}
	for pkg, tests := range o.failed {
		tests = slices.DeleteFunc(tests, func(test string) bool { return slices.Contains(fail[pkg], test) })
		if len(tests) > 0 {
			if out.Killers == nil {
				out.Killers = map[string][]string{}
			}
			out.Killers[pkg] = tests
		}
	}
	switch {
	case o.broken != "":
		out.Status, out.Why = notBuilt, o.broken
	case len(out.Killers) > 0:
		out.Status = killed
	case o.tests == 0:
		out.Status = notRun
	default:
		out.Status = survived
		if o.skipped > 0 {
			out.Why = fmt.Sprintf("%d tests were skipped", o.skipped)
		}
	}
	return out
}

// outcome is what go test says.
type outcome struct {
	tests, skipped int
	failed         map[string][]string // tests by directory of the package
	broken         string              // what does not compile
}

// test runs the tests of packages of a tree.
func (r *runner) test(ctx context.Context, t tree, packages []string, run string, parallel int) outcome {
	args := []string{"test", "-json", "-count=1", "-vet=off", "-ldflags=-s -w", "-timeout=" + r.timeout.String(), fmt.Sprintf("-p=%d", parallel)}
	if run != "" {
		args = append(args, "-run="+run)
	}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.dir
	// Tests of programs must build them: those of make build have no mutant.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CNI_TEST_BIN=") })
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test ends its tests
	cmd.WaitDelay = time.Minute
	out, err := cmd.StdoutPipe()
	if err != nil {
		return outcome{broken: err.Error()}
	}
	if err := cmd.Start(); err != nil {
		return outcome{broken: err.Error()}
	}
	c := collector{outcome: outcome{failed: map[string][]string{}}, open: map[string][]string{}}
	other := ""
	readErr := gotest.Read(out, c.add, func(line string) { other += line + "\n" })
	waitErr := cmd.Wait()
	if c.broken == "" && (readErr != nil || waitErr != nil && len(c.failed) == 0) {
		c.broken = fmt.Sprintf("go test: %v %v\n%s", readErr, waitErr, other)
	}
	return c.outcome
}

type collector struct {
	outcome
	open  map[string][]string // top-level tests that have not ended, by package
	said  []string            // by the compiler
	panic string              // the first line of the last panic
}

func (c *collector) add(e gotest.Event) {
	_, pkg, _ := strings.Cut(e.Package, "/")
	top, _, sub := strings.Cut(e.Test, "/")
	switch e.Action {
	case "build-output":
		c.said = append(c.said, e.Output)
	case "output":
		if strings.HasPrefix(e.Output, "panic: ") {
			c.panic = strings.TrimSpace(e.Output)
		}
	case "run":
		c.tests++
		if !sub {
			c.open[pkg] = append(c.open[pkg], top)
		}
	case "skip":
		if e.Test != "" {
			c.skipped++
		}
		c.end(pkg, e.Test)
	case "pass":
		c.end(pkg, e.Test)
	case "fail":
		c.end(pkg, e.Test)
		switch {
		case e.FailedBuild != "":
			c.broken = strings.Join(c.said, "")
		case e.Test != "":
			if !slices.Contains(c.failed[pkg], top) {
				c.failed[pkg] = append(c.failed[pkg], top)
			}
		case len(c.failed[pkg]) == 0: // a panic, or the time limit
			c.failed[pkg] = []string{fmt.Sprintf("%s (%s)", strings.Join(c.open[pkg], " or "), c.panic)}
		}
		slices.Sort(c.failed[pkg])
	}
}

func (c *collector) end(pkg, test string) {
	c.open[pkg] = slices.DeleteFunc(c.open[pkg], func(t string) bool { return t == test })
}
