package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

var allPhases = []string{"start", "first", "sweep", "screen", "rest", "view"}

// session is one run of the bench.
type session struct {
	options
	table
	dir string // its own, also the home of the programs
}

// bench runs the phases and prints what they measured.
func bench(ctx context.Context, o options, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "benchtui-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &session{options: o, dir: dir}
	fmt.Fprintf(w, "%d CPUs, %s, load %s\n", runtime.NumCPU(), runtime.Version(), load())
	size := o.sizes[len(o.sizes)-1]
	for _, n := range o.sizes {
		if !s.has("first") && (n != size || !s.has("sweep", "screen")) {
			continue
		}
		if err := s.before(ctx, n, n == size); err != nil {
			return err
		}
	}
	for _, phase := range []struct {
		name string
		run  func(context.Context) error
	}{{"start", s.start}, {"rest", s.unread}, {"view", s.view}} {
		if !s.has(phase.name) {
			continue
		}
		if err := phase.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	s.print(w)
	fmt.Fprintf(w, "\nload at the end %s\n", load())
	return nil
}

// has tells whether one of the phases is asked for.
func (s *session) has(names ...string) bool {
	return len(s.phases) == 0 || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(s.phases, n) })
}

// before measures what is done before one fleet.
func (s *session) before(ctx context.Context, nodes int, last bool) (err error) {
	f, err := s.fleet(ctx, nodes, "--latency", "150ms", "--dead", "0.5%")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if s.has("first") {
		if err := s.first(ctx, f); err != nil {
			return fmt.Errorf("first: %w", err)
		}
	}
	if last && s.has("sweep") {
		if err := s.sweep(ctx, f); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	if last && s.has("screen") {
		if err := s.screen(ctx, f); err != nil {
			return fmt.Errorf("screen: %w", err)
		}
	}
	return nil
}

func (s *session) path(name string) string { return filepath.Join(s.bin, name) }

// env is all that the programs get to know: nothing of who runs the bench.
func env(kubeconfig, home string) []string {
	return []string{
		"PATH=/usr/bin:/bin", "HOME=" + home, "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8",
		"KUBECONFIG=" + kubeconfig,
	}
}

// load is how busy the machine is: the mean number of programs that wanted to run in the
// last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
