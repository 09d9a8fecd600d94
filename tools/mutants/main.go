// Command mutants changes the code in the ways that mutants.txt lists, one at a time, and
// prints which tests notice (docs/testing.md, "Mutants").
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"syscall"
	"time"
)

const listFile = "tools/mutants/mutants.txt"

type options struct {
	root, match, format string
	check, resume       bool
	workers             int
	timeout             time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	flag.StringVar(&o.root, "root", ".", "directory of the module under test")
	flag.StringVar(&o.match, "run", "", "only mutants whose \"ID PLACE NAME\" matches this regular expression")
	flag.StringVar(&o.format, "format", "text", "text, markdown or json")
	flag.BoolVar(&o.check, "check", false, "run no tests: only see that all mutants apply and compile")
	flag.BoolVar(&o.resume, "resume", false, "keep what an interrupted run over the same tree found")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many mutants to test at a time")
	flag.DurationVar(&o.timeout, "timeout", 8*time.Minute, "limit of each package's tests")
	flag.Parse()
	problems, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, "mutants:", p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (problems []string, err error) {
	if o.root, err = filepath.Abs(o.root); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(o.root, listFile))
	if err != nil {
		return nil, err
	}
	all, golden, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", listFile, err)
	}
	problems = enough(all)
	if o.check {
		more, err := check(ctx, o.root, append(all, golden))
		return append(problems, more...), err
	}
	if !slices.Contains(formats, o.format) {
		return nil, fmt.Errorf("-format %q is none of %q", o.format, formats)
	}
	selection, err := regexp.Compile(o.match)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	all = slices.DeleteFunc(all, func(m mutant) bool { return !selection.MatchString(m.ID + " " + m.where()) })
	if len(all) == 0 {
		return nil, fmt.Errorf("-run %q matches no mutant", o.match)
	}
	results, err := openStore(ctx, o.root, o.resume)
	if err != nil {
		return nil, err
	}
	r := &runner{root: o.root, timeout: o.timeout, workers: max(1, min(o.workers, len(all))), log: os.Stderr, results: results}
	found, more, err := r.run(ctx, all, golden)
	if err := errors.Join(err, results.file.Close()); err != nil {
		return nil, err
	}
	for _, f := range found {
		if f.Status != killed {
			problems = append(problems, f.String())
		}
	}
	return append(problems, more...), write(os.Stdout, found, o.format)
}
