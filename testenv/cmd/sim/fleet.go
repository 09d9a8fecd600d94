package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"time"

	"cnictl/testenv/sim"
)

// mostNodes is how many nodes the fleet's subnets have addresses for: 196,596, up to 90
// per node.
const mostNodes = 2000

// A fleet allocates many short-lived objects.
const (
	fleetGC     = 300        // percent
	fleetMemory = 1600 << 20 // above this the collector runs more often
)

// fleet scales up all nodes at once, first with the model of upstream and then with our daemon.
// They run one after the other, since a fleet needs much memory. Exceeding a limit is an error.
func fleet(ctx context.Context, nodes int, out, progress io.Writer) error {
	defer debug.SetGCPercent(debug.SetGCPercent(fleetGC))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	debug.SetMemoryLimit(fleetMemory)

	c := sim.Comparison{Fleet: sim.ScaleUp(nodes)}
	begun := time.Now()
	for _, run := range []struct {
		name string
		play func(sim.Fleet) sim.Outcome
		into *sim.Outcome
	}{{"upstream (model)", sim.Fleet.Upstream, &c.Upstream}, {"ours", sim.Fleet.Ours, &c.Ours}} {
		f := c.Fleet
		f.Go = func() bool { return ctx.Err() == nil }
		f.Progress = func(clock time.Duration, running, pods int) {
			fmt.Fprintf(progress, "%s: %v, %d of %d pods run\n", run.name, clock, running, pods)
		}
		*run.into = run.play(f)
		if err := ctx.Err(); err != nil {
			return err
		}
		if run.into.Failure != nil {
			return report(out, run.into.Failure)
		}
	}
	if _, err := c.WriteTo(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "took     %.1fs\n", time.Since(begun).Seconds())
	return c.Verdict()
}
