// Command soak runs thousands of pods on one node of a cluster while the daemon is
// killed repeatedly. It fails if anything is left behind or assigned twice, or if a pod never
// starts.
//
// The first part drives containerd's CRI without a kubelet, the second goes through
// kubelet. Everything but AWS is the real program (testenv/kube/cluster).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/node"
)

const usage = `soak starts and stops pods on one node, many at a time, while the daemon is killed repeatedly.

Usage: soak [flags]

  --cri N         number of pods through containerd's CRI (default 2000)
  --kubelet N     number of pods through kubelet, afterwards (default 300)
  --parallel N    how many at a time (default 30)
  --kill-every D  how often aws-k8s-agent gets SIGKILL (default 20s; 0: never)
  --quick         a tenth of the pods, killed every 5 s
  --within D      give up after this time (default 30m)
  --keep          keep the directory with the logs

It exits with 0 only if every pod started, no two pods had the same address at the same
time, each address belonged to the node, and nothing is left. It needs root.
`

type options struct {
	sandboxes, kubelet, parallel int // pods of the two parts, and at a time
	killEvery, within            time.Duration
	keep                         bool
}

func main() {
	node.MaybeAgent()
	os.Exit(program.Main())
}

var program = frame.Program[options]{Name: "soak", Usage: usage, Parse: parse, Do: do}

func do(ctx context.Context, o options, out, _ io.Writer) error {
	if err := frame.Enter(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.within, fmt.Errorf("it took longer than %s", o.within))
	defer cancel()
	s := &soak{options: o, ctx: ctx, out: out}
	return errors.Join(frame.Attempt(s.run), context.Cause(ctx), s.close())
}

func parse(args []string) (options, error) {
	var o options
	var fs flag.FlagSet
	fs.IntVar(&o.sandboxes, "cri", 2000, "")
	fs.IntVar(&o.kubelet, "kubelet", 300, "")
	fs.IntVar(&o.parallel, "parallel", 30, "")
	fs.DurationVar(&o.killEvery, "kill-every", 20*time.Second, "")
	quick := fs.Bool("quick", false, "")
	fs.DurationVar(&o.within, "within", 30*time.Minute, "")
	fs.BoolVar(&o.keep, "keep", false, "")
	if err := frame.Parse(&fs, args); err != nil {
		return o, err
	}
	const most = 100 // kubelet accepts more pods on any large type
	switch {
	case o.sandboxes < 0 || o.kubelet < 0 || o.sandboxes+o.kubelet == 0:
		return o, errors.New("--cri and --kubelet: no pods")
	case o.parallel < 1 || o.parallel > most:
		return o, fmt.Errorf("--parallel %d: from 1 to %d", o.parallel, most)
	case o.killEvery < 0 || o.within <= 0:
		return o, errors.New("--kill-every and --within: not a time")
	}
	if *quick {
		o.sandboxes, o.kubelet, o.killEvery = (o.sandboxes+9)/10, (o.kubelet+9)/10, 5*time.Second
	}
	return o, nil
}

// soak is one run.
type soak struct {
	options
	ctx     context.Context
	out     io.Writer
	dir     string
	cluster *cluster.Cluster
	machine *cluster.Machine
	cri     *sandboxes
	fresh   held // the daemon's usage without pods

	kubeletRuns bool // kubelet runs and restarts containers

	ledger  *ledger
	tally   *tally         // of the current part
	removal sync.WaitGroup // of ended sandboxes
}

func must[T any](v T, err error) T {
	frame.Check(err)
	return v
}

func (s *soak) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// run plays both parts. It ends with an error if there are problems.
func (s *soak) run() {
	bin := must(frame.Bin(""))
	frame.Check(cluster.Missing(bin))
	s.dir = must(os.MkdirTemp("", "soak"))
	s.say("%d pods through CRI, %d through kubelet, %d at a time, the daemon killed every %s (0: never); at most %s",
		s.sandboxes, s.kubelet, s.parallel, s.killEvery, s.within)
	s.cluster = must(cluster.Start(s.ctx, cluster.Options{
		Dir: s.dir, Binaries: bin, Nodes: []cluster.NodeOptions{{Type: "m5.4xlarge"}}, Progress: s.out,
	}))
	s.machine = s.cluster.Machines[0]
	s.cri = must(openCRI(s.machine))
	s.fresh = must(s.heldBy())
	began := time.Now()
	// kubelet would end sandboxes that the API server does not know.
	frame.Check(s.machine.Stop(s.ctx, "kubelet", syscall.SIGTERM))
	problems := s.play("CRI", s.sandboxes, s.throughCRI)
	problems = append(problems, must(s.cri.list(s.ctx, nil))...) // kubelet would remove them
	if s.kubelet > 0 {
		frame.Check(s.machine.StartKubelet(s.ctx))
		frame.Check(s.machine.AwaitReady(s.ctx))
		s.kubeletRuns = true
		problems = append(problems, s.play("kubelet", s.kubelet, s.throughKubelet)...)
	}
	ended := time.Now()
	left := s.leftovers()
	for _, what := range left {
		problems = append(problems, "left: "+what)
	}
	now := must(s.heldBy())
	s.say("%d left after %s; daemon %s (without pods %s)", len(left), time.Since(ended).Round(time.Second), now, s.fresh)
	if err := now.grown(s.fresh); err != nil {
		problems = append(problems, err.Error())
	}
	for _, v := range s.cluster.World.Violations() {
		problems = append(problems, "EC2: "+v)
	}
	s.say("took %s", time.Since(began).Round(time.Second))
	if len(problems) > 0 {
		frame.Check(fmt.Errorf("%d problems:\n  %s", len(problems), strings.Join(problems, "\n  ")))
	}
	s.say("leftovers 0, doubled addresses 0, failed pods 0")
}

func (s *soak) close() (err error) {
	if s.cri != nil {
		err = s.cri.conn.Close()
	}
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Close())
	}
	if s.keep {
		s.say("logs: %s", s.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// play runs the pods of a part, several one after another in each slot, and returns the problems.
func (s *soak) play(part string, pods int, life func(slot, round int)) []string {
	s.ledger, s.tally = newLedger(), newTally()
	began := time.Now()
	during, stop := context.WithCancel(s.ctx)
	var company sync.WaitGroup
	company.Go(func() { s.killing(during) })
	company.Go(func() { every(during, time.Second, s.audit) })
	company.Go(func() {
		every(during, 5*time.Second, func() {
			daemon := "away" // it was killed a moment ago
			if now, err := s.heldBy(); err == nil {
				daemon = now.String()
			}
			since := time.Since(began)
			s.say("%4.0fs %s: %s; daemon %s", since.Seconds(), part, s.tally.line(since, pods), daemon)
		})
	})
	err := frame.Each(s.ctx, s.parallel, s.parallel, func(slot int) {
		for round := 0; round*s.parallel+slot < pods && s.ctx.Err() == nil; round++ {
			life(slot, round)
		}
	})
	took := time.Since(began)
	stop()
	company.Wait()
	s.removal.Wait()
	if err = errors.Join(err, context.Cause(s.ctx)); err != nil {
		frame.Check(fmt.Errorf("%s: %w: %s", part, err, strings.Join(append(s.tally.counted(s.tally.found), s.tally.counted(s.tally.refused)...), "\n  ")))
	}
	if s.kubeletRuns {
		s.countEvents()
	}
	s.say("%s: %s in %s", part, s.tally.line(took, pods), took.Round(time.Second))
	for _, r := range s.tally.counted(s.tally.refused) {
		s.say("  %s", r)
	}
	return s.tally.counted(s.tally.found)
}

// every calls f once per period until the context ends.
func every(ctx context.Context, period time.Duration, f func()) {
	for frame.Pause(ctx, period); ctx.Err() == nil; frame.Pause(ctx, period) {
		f()
	}
}
