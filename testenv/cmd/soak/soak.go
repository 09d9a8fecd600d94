package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"cnictl/testenv/cluster"
)

// startWithin bounds the start of the cluster.
const startWithin = 5 * time.Minute

// soak is one run.
type soak struct {
	options
	out     io.Writer
	cluster *cluster.Cluster
	machine *cluster.Machine
	cri     *sandboxes
	before  map[string]bool // iptables lines without pods
	fresh   held            // the daemon's usage without pods

	kubeletRuns bool // kubelet runs and restarts containers

	ledger  *ledger
	board   *board
	tally   *tally         // of the current part
	removal sync.WaitGroup // of ended sandboxes
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if err := cluster.Missing(o.bin); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return err
	}
	s := &soak{options: o, out: out}
	defer func() {
		if s.cluster != nil {
			err = errors.Join(err, s.cluster.Close())
		}
		if o.keep {
			s.say("logs: %s", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	kills := "never killed"
	if o.killEvery > 0 {
		kills = "killed every " + o.killEvery.String()
	}
	s.say("%d pods through CRI, %d through kubelet, %d at a time, the daemon %s; at most %s", o.sandboxes, o.kubelet, o.parallel, kills, o.within)
	if err := s.start(ctx, dir); err != nil {
		return err
	}
	defer s.cri.conn.Close()
	began := time.Now()
	problems, err := s.parts(ctx)
	if err != nil {
		return err
	}
	for _, v := range s.cluster.World.Violations() {
		problems = append(problems, "EC2: "+v)
	}
	s.say("took %s", time.Since(began).Round(time.Second))
	if len(problems) > 0 {
		return fmt.Errorf("%d problems:\n  %s", len(problems), strings.Join(problems, "\n  "))
	}
	s.say("leftovers 0, doubled addresses 0, failed pods 0")
	return nil
}

func (s *soak) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// start boots the node and records its state without pods.
func (s *soak) start(ctx context.Context, dir string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	s.cluster, err = cluster.Start(ctx, cluster.Options{
		Dir: dir, Binaries: s.bin, Nodes: []cluster.NodeOptions{{Type: s.instance}}, Progress: s.out,
	})
	if err != nil {
		return err
	}
	s.machine = s.cluster.Machines[0]
	if s.cri, err = openCRI(s.machine); err != nil {
		return err
	}
	if s.before, err = s.chains(); err != nil {
		return err
	}
	s.fresh, err = s.heldBy()
	return err
}

// part is one way to run pods.
type part struct {
	name string
	pods int
	life func(ctx context.Context, slot, round int)
	more []func(context.Context) // runs alongside the pods

	after func(context.Context) error
}

// parts runs both parts and returns the problems.
func (s *soak) parts(ctx context.Context) (problems []string, err error) {
	// kubelet would end sandboxes that the API server does not know.
	if err := s.machine.Stop(ctx, "kubelet", syscall.SIGTERM); err != nil {
		return nil, err
	}
	found, err := s.play(ctx, part{name: "CRI", pods: s.options.sandboxes, life: s.throughCRI})
	if err != nil {
		return nil, err
	}
	problems = append(problems, found...)
	left, err := s.cri.list(ctx, nil) // kubelet would remove them
	if err != nil {
		return nil, err
	}
	problems = append(problems, left...)
	if s.kubelet > 0 {
		found, err := s.withKubelet(ctx)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	found, err = s.afterwards(ctx)
	return append(problems, found...), err
}

func (s *soak) withKubelet(ctx context.Context) ([]string, error) {
	if err := s.machine.StartKubelet(ctx); err != nil {
		return nil, err
	}
	s.kubeletRuns = true
	if err := s.machine.AwaitReady(ctx); err != nil {
		return nil, err
	}
	return s.play(ctx, part{name: "kubelet", pods: s.kubelet, life: s.throughKubelet,
		more: []func(context.Context){s.posting}, after: s.sandboxEvents})
}

// afterwards checks for leftovers of all pods.
func (s *soak) afterwards(ctx context.Context) (problems []string, err error) {
	began := time.Now()
	left, err := s.leftovers(ctx)
	if err != nil {
		return nil, err
	}
	for _, what := range left {
		problems = append(problems, "left: "+what)
	}
	now, err := s.heldBy()
	if err != nil {
		return nil, err
	}
	if err := now.grown(s.fresh); err != nil {
		problems = append(problems, err.Error())
	}
	s.say("%d left after %s; daemon %s (without pods %s)", len(left), time.Since(began).Round(time.Second), now, s.fresh)
	return problems, nil
}

// play runs the pods of a part.
func (s *soak) play(ctx context.Context, p part) ([]string, error) {
	s.ledger, s.board, s.tally = newLedger(), newBoard(), newTally()
	began := time.Now()
	during, stop := context.WithCancel(ctx)
	var company sync.WaitGroup
	for _, f := range append(p.more, s.killing, s.audit, func(ctx context.Context) { s.report(ctx, p, began) }) {
		company.Go(func() { f(during) })
	}
	slots(ctx, s.parallel, p.pods, p.life)
	took := time.Since(began)
	stop()
	company.Wait()
	s.removal.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", p.name, err, strings.Join(append(s.tally.problems(), s.tally.refusals()...), "\n  "))
	}
	if p.after != nil {
		if err := p.after(ctx); err != nil {
			return nil, err
		}
	}
	s.say("%s: %s in %s", p.name, s.tally.line(took, p.pods), took.Round(time.Second))
	for _, r := range s.tally.refusals() {
		s.say("  %s", r)
	}
	return s.tally.problems(), nil
}

// reportEvery is how often progress is reported.
const reportEvery = 5 * time.Second

func (s *soak) report(ctx context.Context, p part, began time.Time) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		since := time.Since(began)
		now, err := s.heldBy()
		daemon := now.String()
		if err != nil {
			daemon = "away" // it was killed a moment ago
		}
		s.say("%4.0fs %s: %s; daemon %s", since.Seconds(), p.name, s.tally.line(since, p.pods), daemon)
	}
}
