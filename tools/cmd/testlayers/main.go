// Command testlayers runs the test layers of docs/testing.md in two lanes, and prints what ran,
// failed, was skipped and took long in each. In CI and as root a skip fails, and so does a
// test that a file declares and that gave no result: what does not run must not look like
// what passes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	root   string
	layers []string
	run    string
	count  int
	strict bool // a skip fails, unless the layer runs with -short and that is its reason

	nightly bool     // also what is no part of the gate
	stamp   bool     // give all files times that depend on their content, not only those in bin/
	targets []string // of the Makefile, to run beside the layers
	slowest int      // packages and tests to print

	fuzz time.Duration // run fuzz targets, this long each, instead of tests
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	var layers, targets string
	flag.StringVar(&o.root, "root", ".", "directory of the module under test")
	flag.StringVar(&layers, "layers", strings.Join(layerNames(false), ","), "comma-separated list of layers")
	flag.StringVar(&targets, "targets", "", "comma-separated list of Makefile targets to run beside the layers")
	flag.BoolVar(&o.stamp, "stamp", false, "set the time of each committed file from its content, so that the go command finds the results of another clone")
	flag.BoolVar(&o.nightly, "nightly", false, "also run the tests with the build tag "+nightlyTag)
	flag.StringVar(&o.run, "run", "", "run only matching tests; with -fuzz: only targets whose \"PACKAGE TARGET\" matches")
	flag.IntVar(&o.count, "count", 0, "number of times to run each test; 0: once, or not at all if the go command has the result")
	flag.IntVar(&o.slowest, "slowest", 10, "number of slowest packages and tests to print")
	flag.DurationVar(&o.fuzz, "fuzz", 0, "run every fuzz target for this long instead of tests")
	flag.Parse()
	o.layers, o.targets = words(layers), words(targets)
	o.strict = os.Getenv("CI") == "true" || strings.Contains(os.Getenv("CNI_TEST_REQUIRE"), "root")

	err := run(ctx, o)
	if errors.Is(err, errFailed) {
		os.Exit(1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testlayers:", err)
		os.Exit(2)
	}
}

// errFailed means that tests failed and were reported.
var errFailed = errors.New("tests failed")

func run(ctx context.Context, o options) error {
	t, err := readTree(ctx, o.root, o.nightly)
	if err != nil {
		return err
	}
	if o.fuzz > 0 {
		return runFuzz(ctx, o, t.pkgs)
	}
	selected, err := selectLayers(o.layers, o.nightly)
	if err != nil {
		return err
	}
	if err := t.writeInputs(ctx, o.root); err != nil {
		return err
	}
	if err := stampTree(ctx, o.root, o.stamp); err != nil {
		return err
	}
	before := nodeFiles("/")
	results, err := runJobs(ctx, jobs(o, selected, t.pkgs))
	if err != nil {
		return err
	}
	printSlowest(os.Stdout, results, o.slowest)

	problems := leftBehind(before, nodeFiles("/"))
	for i, l := range selected {
		if o.strict {
			problems = append(problems, results[i].hidden(l)...)
		}
		if o.run == "" && results[i].note == "" {
			problems = append(problems, results[i].missing(l.packages(t.pkgs))...)
		}
	}
	if err := summarize(os.Stdout, results, problems); err != nil {
		return err
	}
	return matched(o.run, results)
}

// nightlyTag is the build tag of tests that are no part of the gate.
const nightlyTag = "nightly"

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// jobs returns the layers, then the targets of the Makefile.
func jobs(o options, selected []layer, pkgs []pkg) (out []job) {
	for _, l := range selected {
		out = append(out, job{l.name, l.lane, func(ctx context.Context) (layerResult, error) {
			return runLayer(ctx, o, l, l.packages(pkgs))
		}})
	}
	for _, target := range o.targets {
		out = append(out, job{target, computes, func(ctx context.Context) (layerResult, error) { return runTarget(ctx, o, target) }})
	}
	return out
}

// nodeFiles returns what the CNI has on a machine: files that a test must not touch there.
func nodeFiles(root string) (there []string) {
	for _, name := range []string{"host", "etc/cni/net.d/10-aws.conflist", "opt/cni/bin/aws-cni", "run/aws-node", "var/log/aws-routed-eni"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			there = append(there, filepath.Join(root, name))
		}
	}
	return there
}

// leftBehind reports what was not there before the tests. A program of the node behaves
// differently where it finds such files, so the next run may fail.
func leftBehind(before, after []string) (problems []string) {
	for _, name := range after {
		if !slices.Contains(before, name) {
			problems = append(problems, "a test or something beside the tests has made "+name+" on this machine: remove it")
		}
	}
	return problems
}

// matched reports a selection that matches nothing: a misspelt name must not look like tests
// that passed.
func matched(selection string, results []layerResult) error {
	if selection == "" {
		return nil
	}
	tests, subtests := 0, false
	for _, r := range results {
		if r.note != "" && r.note != noPackages {
			return nil // the layer did not run: unknown what would match
		}
		// A skipped test skips before it starts its subtests.
		tests, subtests = tests+r.passed+r.failed+r.skipped, subtests || r.skipped > 0
		for id := range r.status {
			subtests = subtests || strings.Contains(id.Test, "/")
		}
	}
	switch {
	case tests == 0:
		return fmt.Errorf("-run %q matches no test in these layers, so nothing was tested", selection)
	case strings.Contains(selection, "/") && !subtests:
		return fmt.Errorf("-run %q matches no subtest in these layers, so only their parent tests ran", selection)
	}
	return nil
}
