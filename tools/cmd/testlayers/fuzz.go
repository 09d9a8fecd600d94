package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fuzzGrace is how much longer than its time a target may take, for the seeds, the cached
// corpus and finishing the last input.
const fuzzGrace = 2 * time.Minute

// fuzzer runs targets of several packages at once. Each target has one worker: on a small
// machine two targets in parallel try more inputs than one with two workers, because the
// seeds and the engine's own work are not parallel.
type fuzzer struct {
	options
	bin   string // directory of the built test binaries
	cache string // where go test stores interesting inputs

	mu     sync.Mutex // guards the fields below
	out    io.Writer
	ran    int
	failed int
}

// fuzzUnit is the work on one package, which is built once.
type fuzzUnit struct {
	pkg   pkg
	names []string
}

// runFuzz runs every fuzz target that matches o.run.
func runFuzz(ctx context.Context, o options, pkgs []pkg) error {
	start := time.Now()
	match, err := regexp.Compile(o.run)
	if err != nil {
		return fmt.Errorf("read -run: %w", err)
	}
	f := &fuzzer{options: o, out: os.Stdout}
	units := fuzzUnits(pkgs, match)
	if len(units) == 0 && o.run != "" {
		return fmt.Errorf("-run %q matches no fuzz target, so nothing was fuzzed; it must match \"PACKAGE TARGET\"", o.run)
	}
	if f.bin, err = os.MkdirTemp("", "fuzz-"); err != nil {
		return fmt.Errorf("make directory for fuzz binaries: %w", err)
	}
	defer os.RemoveAll(f.bin)
	gocache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	f.cache = filepath.Join(strings.TrimSpace(string(gocache)), "fuzz")

	next := make(chan fuzzUnit)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for u := range next {
				f.runUnit(ctx, u)
			}
		})
	}
	for _, u := range units {
		next <- u
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Fprintf(f.out, "fuzz %d passed, %d failed  (%s)\n", f.ran-f.failed, f.failed, time.Since(start).Round(100*time.Millisecond))
	if f.failed > 0 {
		return errFailed
	}
	return nil
}

// fuzzUnits returns the packages with targets, those with the most targets first, so that no
// large package is left for the end.
func fuzzUnits(pkgs []pkg, match *regexp.Regexp) []fuzzUnit {
	var out []fuzzUnit
	for _, p := range pkgs {
		u := fuzzUnit{pkg: p}
		for _, name := range p.Fuzz {
			if match.MatchString(p.ImportPath + " " + name) {
				u.names = append(u.names, name)
			}
		}
		if len(u.names) > 0 {
			out = append(out, u)
		}
	}
	slices.SortStableFunc(out, func(a, b fuzzUnit) int { return cmp.Compare(len(b.names), len(a.names)) })
	return out
}

// runUnit builds a package with the instrumentation for fuzzing and runs its targets.
func (f *fuzzer) runUnit(ctx context.Context, u fuzzUnit) {
	if ctx.Err() != nil {
		return
	}
	binary := filepath.Join(f.bin, strings.ReplaceAll(u.pkg.ImportPath, "/", "-")+".test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-fuzz=.", "-ldflags=-s -w", "-o", binary, u.pkg.ImportPath)
	build.Dir = f.root
	if out, err := build.CombinedOutput(); err != nil {
		for _, name := range u.names {
			f.report(u.pkg, name, fuzzResult{err: fmt.Errorf("build: %w", err), output: out})
		}
		return
	}
	defer os.Remove(binary)
	for _, name := range u.names {
		if r := f.runTarget(ctx, binary, u.pkg, name); ctx.Err() == nil {
			f.report(u.pkg, name, r)
		}
	}
}

func (f *fuzzer) runTarget(ctx context.Context, binary string, p pkg, name string) fuzzResult {
	ctx, cancel := context.WithTimeoutCause(ctx, f.fuzz+fuzzGrace, errors.New("it did not finish"))
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.fuzz=^"+name+"$", "-test.fuzztime="+f.fuzz.String(),
		// Minimize interesting inputs with a few tries only: by default this takes all of the
		// time if every input is new in some way.
		"-test.fuzzminimizetime=10x", "-test.parallel=1", "-test.fuzzcachedir="+filepath.Join(f.cache, p.ImportPath))
	cmd.Dir = filepath.Join(f.root, p.Rel) // the directory that has testdata/fuzz
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// The engine ends its worker when interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return readFuzzOutput(out.Bytes(), err)
}

// report prints one line for a target, and all of its output if it failed.
func (f *fuzzer) report(p pkg, name string, r fuzzResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ran++
	verdict := "pass"
	if r.err != nil {
		f.failed++
		verdict = "FAIL"
		fmt.Fprintf(f.out, "--- %s %s: %v\n%s", p.ImportPath, name, r.err, r.output)
		if r.crasher != "" {
			fmt.Fprintf(f.out, "    input: %s\n    again: go test -run='^%s$/^%s$' ./%s\n", filepath.Join(p.Rel, r.crasher), name, filepath.Base(r.crasher), p.Rel)
		}
	}
	fmt.Fprintf(f.out, "%s %-44s %-26s %9d execs %7.0f/s %5d new (%d in all)  %s\n", verdict, p.ImportPath, name,
		r.execs, r.rate(), r.interesting, r.corpus, r.took)
}

// fuzzResult is the result that the engine reported for one target.
type fuzzResult struct {
	execs, interesting, corpus int // inputs tried; new ones among these; corpus size including seeds
	took                       time.Duration
	crasher                    string // file below the package's directory, "" if none
	output                     []byte
	err                        error
}

func (r fuzzResult) rate() float64 {
	if r.took <= 0 {
		return 0
	}
	return float64(r.execs) / r.took.Seconds()
}

var (
	fuzzProgress = regexp.MustCompile(`(?m)^fuzz: elapsed: (\S+), execs: (\d+) \(\d+/sec\)(?:, new interesting: (\d+) \(total: (\d+)\))?`)
	// fuzzBaseline counts the inputs of seeds and cache, which run before new ones: a slow
	// machine may get no further.
	fuzzBaseline = regexp.MustCompile(`(?m)^fuzz: elapsed: (\S+), gathering baseline coverage: (\d+)/\d+ completed`)
	fuzzCrasher  = regexp.MustCompile(`(?m)^\s*Failing input written to (\S+)$`)
	// fuzzTimeUp matches how the engine sometimes reports the end of the given time.
	fuzzTimeUp = regexp.MustCompile(`(?m)^--- FAIL: \S+ \(\S+\)\n\s+context deadline exceeded\n(?:FAIL\n|exit status 1\n)*\z`)
)

// readFuzzOutput parses the output of a test binary that ended with err.
func readFuzzOutput(output []byte, err error) fuzzResult {
	r := fuzzResult{output: output, err: err}
	if all := fuzzProgress.FindAllSubmatch(output, -1); len(all) > 0 {
		last := all[len(all)-1]
		r.took, _ = time.ParseDuration(string(last[1]))
		r.execs, _ = strconv.Atoi(string(last[2]))
		r.interesting, _ = strconv.Atoi(string(last[3]))
		r.corpus, _ = strconv.Atoi(string(last[4]))
	}
	if all := fuzzBaseline.FindAllSubmatch(output, -1); r.execs == 0 && len(all) > 0 {
		last := all[len(all)-1]
		r.took, _ = time.ParseDuration(string(last[1]))
		r.execs, _ = strconv.Atoi(string(last[2]))
	}
	if m := fuzzCrasher.FindSubmatch(output); m != nil {
		r.crasher = string(m[1])
	}
	switch {
	case err != nil && r.crasher == "" && r.execs > 0 && fuzzTimeUp.Match(output):
		r.err = nil
	case err == nil && r.execs == 0:
		r.err = errors.New("no input was tried: check whether the target is skipped")
	}
	return r
}
