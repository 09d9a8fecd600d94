package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"cnictl/testenv/cmd/internal/figure"
	"cnictl/testenv/terminal"
)

// Figures of eks-node-viewer by number of nodes: the processor time to read nodes and pods, and
// for one frame.
var (
	viewerIngest = map[int]float64{100: 0.07, 1000: 0.48, 5000: 6.7} // s
	viewerFrame  = map[int]float64{100: 2.5, 1000: 24, 5000: 102}    // ms
)

const (
	screenLimit = time.Minute     // for the first rows
	sweepLimit  = 5 * time.Minute // until every node has been read once
)

// tui starts the screens in a separate home directory, because they save filters and
// sort orders.
func (s *session) tui(ctx context.Context, kubeconfig string) (*terminal.Terminal, error) {
	home, err := os.MkdirTemp(s.dir, "home-")
	if err != nil {
		return nil, err
	}
	return terminal.Start(ctx, terminal.Options{Columns: columns, Rows: rows, Env: env(kubeconfig, home)}, s.path("cnictl"), "tui")
}

// first measures the time to the first screen.
func (s *session) first(ctx context.Context, f *fleet) (err error) {
	x, err := newFront(f)
	if err != nil {
		return err
	}
	defer x.close()
	t, err := s.tui(ctx, x.kubeconfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.Await(ctx, screenLimit, hasRows); err != nil {
		return err
	}
	shown := time.Since(t.Started)
	if err := t.Await(ctx, screenLimit, hasAll(f.nodes)); err != nil {
		return err
	}
	all := time.Since(t.Started)
	cpu, err := used(t.Process().Pid)
	if err != nil {
		return err
	}
	listed := x.lastPage()
	if listed.IsZero() {
		return errors.New("the nodes were never listed")
	}
	list := listed.Sub(t.Started)
	s.add(fmt.Sprintf("%d nodes: exec to first rows", f.nodes), "s", shown.Seconds())
	s.add("exec to LIST answered", "s", list.Seconds())
	s.add("LIST answered to all rows", "s", max(all-list, 0).Seconds()).aim(2)
	r := s.add("CPU until then", "s", cpu.Seconds())
	if v, ok := viewerIngest[f.nodes]; ok {
		r.beside(v)
	}
	return nil
}

// screen measures the screens with a changing fleet: a sweep, keys, idle time.
func (s *session) screen(ctx context.Context, f *fleet) (err error) {
	t, err := s.tui(ctx, f.kubeconfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.Await(ctx, screenLimit, hasAll(f.nodes)); err != nil {
		return err
	}
	pid := t.Process().Pid
	took, share, err := s.watched(pid, func() error {
		err := t.Await(ctx, sweepLimit, isSwept)
		return err
	})
	if err != nil {
		return err
	}
	s.add(fmt.Sprintf("screen, %d nodes: first sweep", f.nodes), "s", took.Seconds()).aim(30)
	s.add("CPU during it", "% of a core", share).aim(30)
	held, err := peak(pid)
	if err != nil {
		return err
	}
	s.add("peak memory after it", "MB", held/1e6).aim(250)
	if err := s.typing(ctx, t); err != nil {
		return err
	}
	return s.resting(ctx, t)
}

// watched returns how long do took, and the share of a core that a process used
// meanwhile, in percent.
func (s *session) watched(pid int, do func() error) (time.Duration, float64, error) {
	before, err := used(pid)
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	took := time.Since(begin)
	after, err := used(pid)
	return took, 100 * float64(after-before) / float64(max(took, time.Millisecond)), err
}

func (s *session) typing(ctx context.Context, t *terminal.Terminal) error {
	frames, drawn := t.Counts()
	var keys typed
	took, share, err := s.watched(t.Process().Pid, func() (err error) {
		keys, err = typeKeys(ctx, t, s.keys)
		return err
	})
	if err != nil {
		return err
	}
	framesNow, drawnNow := t.Counts()
	s.add(fmt.Sprintf("key to frame, %d keys, p50", len(keys.all)), "ms", figure.Milliseconds(figure.Quantile(keys.all, 0.5)))
	s.add("the same, p90", "ms", figure.Milliseconds(figure.Quantile(keys.all, 0.9)))
	s.add("the same, p99", "ms", figure.Milliseconds(figure.Quantile(keys.all, 0.99))).aim(50)
	s.add("the same, most", "ms", figure.Milliseconds(figure.Quantile(keys.all, 1)))
	s.add("the same, keys lost", "", float64(keys.lost))
	s.add("key to echo of cat meanwhile, p50", "ms", figure.Milliseconds(figure.Quantile(keys.echoes, 0.5)))
	s.add("the same, p99", "ms", figure.Milliseconds(figure.Quantile(keys.echoes, 0.99)))
	s.add("CPU while keys are typed", "% of a core", share)
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(keys.kinds)) {
		list := keys.kinds[k]
		kinds = append(kinds, fmt.Sprintf("%s %.0f / %.0f / %.0f ms (%d keys)", k, figure.Milliseconds(figure.Quantile(list, 0.5)), figure.Milliseconds(figure.Quantile(list, 0.99)), figure.Milliseconds(figure.Quantile(list, 1)), len(list)))
	}
	s.note("key to frame, p50 / p99 / most: %s. %d frames of %d bytes in the mean, in %.0f s.",
		strings.Join(kinds, ", "), framesNow-frames, (drawnNow-drawn)/int64(max(framesNow-frames, 1)), took.Seconds())
	if keys.lost > 0 {
		s.note("the first key that was lost: %s", keys.reason)
	}
	return nil
}

const (
	focusOut = "\x1b[O"
	focusIn  = "\x1b[I"
	settle   = 3 * time.Second // for work in progress
)

// resting measures the cost of an idle screen.
func (s *session) resting(ctx context.Context, t *terminal.Terminal) error {
	paused := func(s *terminal.Screen) bool { return strings.Contains(s.Line(0), "PAUSED") }
	if _, err := t.Expect(ctx, "p", keyLimit, paused); err != nil {
		return err
	}
	if err := s.idle(ctx, t, "idle CPU, paused"); err != nil {
		return err
	}
	if _, err := t.Expect(ctx, "p", keyLimit, func(s *terminal.Screen) bool { return !paused(s) }); err != nil {
		return err
	}
	if err := t.Press(focusOut); err != nil {
		return err
	}
	if err := s.idle(ctx, t, "idle CPU, without the focus"); err != nil {
		return err
	}
	return t.Press(focusIn)
}

func (s *session) idle(ctx context.Context, t *terminal.Terminal, name string) error {
	if err := pause(ctx, settle); err != nil {
		return err
	}
	_, share, err := s.watched(t.Process().Pid, func() error { return pause(ctx, s.rest) })
	if err != nil {
		return err
	}
	s.add(name, "% of a core", share).aim(3).beside(100)
	return nil
}

// unread measures an idle screen of nodes that cannot be read.
func (s *session) unread(ctx context.Context) (err error) {
	f, err := s.fleet(ctx, s.sizes[len(s.sizes)-1], "--no-daemon", "100%", "--churn", "-1s")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	t, err := s.tui(ctx, f.kubeconfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.Await(ctx, screenLimit, hasAll(f.nodes)); err != nil {
		return err
	}
	return s.idle(ctx, t, "idle CPU, nothing due")
}
