// Sim runs seeds of the simulation (testenv/sim), one per CPU at a time, and stops at the
// first failure.
//
//	sim -seeds 2000 -start 1   run seeds 1 to 2000
//	sim -seeds 1 -start 7 -v   print every event of seed 7
//	sim -mistakes 500          check that 500 seeds catch each deliberate bug
//	sim -fleet 1000            scale up 1,000 nodes at once, ours and a model of upstream
//
// It exits with 1 if an invariant is broken, a deliberate bug is not caught, or the fleet exceeds
// what sim.Comparison.Verdict allows.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cnictl/testenv/sim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

type options struct {
	seeds, start uint64
	verbose      bool
	keepGoing    bool
	mistakes     uint64
	workers      int
	fleet        int
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	var o options
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.Uint64Var(&o.seeds, "seeds", 2000, "number of seeds to run")
	flags.Uint64Var(&o.start, "start", 1, "first seed")
	flags.BoolVar(&o.verbose, "v", false, "print every event")
	flags.BoolVar(&o.keepGoing, "all", false, "continue after a failure and list all failures")
	flags.Uint64Var(&o.mistakes, "mistakes", 0, "check that each deliberate bug is caught within this many seeds (0: run seeds)")
	flags.IntVar(&o.workers, "workers", runtime.NumCPU(), "number of seeds to run in parallel")
	flags.IntVar(&o.fleet, "fleet", 0, "number of nodes to scale up at once, with our daemon and with a model of upstream (0: run seeds)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil // already printed
		}
		return err
	}
	if o.fleet < 0 || o.fleet > mostNodes {
		return fmt.Errorf("-fleet %d: want 0 to %d", o.fleet, mostNodes)
	}
	if o.fleet > 0 {
		return fleet(ctx, o.fleet, out, progress)
	}
	if o.mistakes > 0 {
		return find(ctx, o, out)
	}
	if o.verbose {
		return verbose(ctx, o, out)
	}
	return play(ctx, o, out, progress)
}

// verbose runs seeds one after another and prints every event.
func verbose(ctx context.Context, o options, out io.Writer) error {
	for seed := o.start; seed < o.start+o.seeds && ctx.Err() == nil; seed++ {
		res := sim.Run(sim.Options{Seed: seed, Trace: func(line string) { fmt.Fprintln(out, line) }})
		if res.Failure != nil {
			return report(out, res.Failure)
		}
		fmt.Fprint(out, res.Stats)
	}
	return ctx.Err()
}

// find looks for the deliberate bugs in parallel.
func find(ctx context.Context, o options, out io.Writer) error {
	var missed atomic.Bool
	var mu sync.Mutex
	mistakes := make(chan sim.Mistake)
	var group sync.WaitGroup
	for range max(1, o.workers) {
		group.Go(func() {
			for m := range mistakes {
				text := fmt.Sprintf("not caught by %d seeds", o.mistakes)
				if f := m.Find(o.start, o.mistakes); f != nil {
					text = fmt.Sprintf("caught by seed %d: %s", f.Seed, f.Invariant)
				} else {
					missed.Store(true)
				}
				mu.Lock()
				fmt.Fprintf(out, "%-22s %s\n", m, text)
				mu.Unlock()
			}
		})
	}
	for _, m := range sim.Mistakes() {
		if ctx.Err() == nil {
			mistakes <- m
		}
	}
	close(mistakes)
	group.Wait()
	if missed.Load() {
		return errors.New("a deliberate bug was not caught")
	}
	return ctx.Err()
}

var errBroken = errors.New("an invariant is broken")

func report(out io.Writer, f *sim.Failure) error {
	if _, err := f.WriteTo(out); err != nil {
		return err
	}
	return errBroken
}

// play runs seeds in parallel.
func play(ctx context.Context, o options, out, progress io.Writer) error {
	begun := time.Now()
	var next, done atomic.Uint64
	var stop atomic.Bool
	var mu sync.Mutex
	var all sim.Stats
	var failures []*sim.Failure
	var group sync.WaitGroup
	for range max(1, o.workers) {
		group.Go(func() {
			for ctx.Err() == nil && !stop.Load() {
				n := next.Add(1) - 1
				if n >= o.seeds {
					return
				}
				res := sim.Run(sim.Options{Seed: o.start + n})
				mu.Lock()
				all.Add(res.Stats)
				if res.Failure != nil {
					failures = append(failures, res.Failure)
					stop.Store(!o.keepGoing)
				}
				mu.Unlock()
				if d := done.Add(1); d%100 == 0 {
					fmt.Fprintf(progress, "%d of %d seeds, %.0f a second\n", d, o.seeds, float64(d)/time.Since(begun).Seconds())
				}
			}
		})
	}
	group.Wait()
	fmt.Fprint(out, all)
	fmt.Fprintf(out, "took     %.1fs, %.0f seeds a second\n", time.Since(begun).Seconds(), float64(all.Seeds)/time.Since(begun).Seconds())
	slices.SortFunc(failures, func(a, b *sim.Failure) int { return cmp.Compare(a.Seed, b.Seed) })
	if len(failures) > 1 {
		for _, f := range failures {
			fmt.Fprintln(out, f)
		}
		return errBroken
	}
	if len(failures) == 1 {
		return report(out, failures[0])
	}
	return ctx.Err()
}
