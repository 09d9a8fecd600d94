package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cnictl/testenv/cmd/internal/frame"
)

var allPhases = []string{"start", "first", "sweep", "screen", "rest", "view", "soak", "doctor", "archive", "doctor-soak"}

// byName are the phases that run only if selected.
var byName = []string{"soak", "doctor", "archive", "doctor-soak"}

// Properties of the fleets.
const (
	latency = 150 * time.Millisecond // of each stream to a node
	dead    = "0.5%"                 // of the nodes never answer
)

// conditions describe how the figures were measured.
func (o options) conditions() string {
	return fmt.Sprintf("terminal %d×%d, %s a stream, %s of the nodes dead, the fleet on the same processors", columns, rows, latency, dead)
}

// session is one run of the bench.
type session struct {
	options
	table
	dir string // the session's directory, also the programs' home
}

// bench runs the phases and prints what they measured.
func bench(ctx context.Context, o options, w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "benchtui-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &session{options: o, dir: dir}
	s.progress = w
	s.say("%s, load %s; %s", frame.Machine(), frame.Load(), o.conditions())
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
	}{{"start", s.start}, {"rest", s.unread}, {"view", s.view}, {"soak", s.long}, {"doctor", s.scale}, {"archive", s.archive}, {"doctor-soak", s.sound}} {
		if !s.has(phase.name) {
			continue
		}
		s.report()
		if err := phase.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	s.report()
	s.print(w)
	fmt.Fprintf(w, "\nload at the end %s\n", frame.Load())
	return s.failed()
}

// has reports whether one of the phases is selected.
func (s *session) has(names ...string) bool {
	return len(s.phases) == 0 && !slices.Contains(byName, names[0]) || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(s.phases, n) })
}

// before runs the phases that need a fleet, with a fleet of the given size.
func (s *session) before(ctx context.Context, nodes int, last bool) (err error) {
	f, err := s.living(ctx, nodes)
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

// living starts a fleet as the targets assume it: with latency, and some dead nodes.
func (s *session) living(ctx context.Context, nodes int) (*fleet, error) {
	return s.fleet(ctx, nodes, "--latency", latency.String(), "--dead", dead)
}

// long runs the soak with a separate fleet.
func (s *session) long(ctx context.Context) (err error) {
	f, err := s.living(ctx, s.sizes[len(s.sizes)-1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return s.soak(ctx, f)
}

func (s *session) path(name string) string { return filepath.Join(s.bin, name) }

// env returns the programs' whole environment, with nothing from the user's.
func env(kubeconfig, home string) []string {
	return []string{
		"PATH=/usr/bin:/bin", "HOME=" + home, "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8",
		"KUBECONFIG=" + kubeconfig,
	}
}
