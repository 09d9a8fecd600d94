package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"time"

	"cnictl/daemon/sim"
)

// mostNodes is what the fleet's subnets have addresses for: each node takes up to 90 of
// 196,596.
const mostNodes = 2000

// A fleet allocates much that lives briefly.
const (
	fleetGC     = 300        // percent
	fleetMemory = 1600 << 20 // from which on it collects more often
)

// fleet runs nodes that scale up together, with ours and with the model of the original,
// one after the other: memory is what they need most. Ours taking too much is an error.
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
	}{{"original (model)", sim.Fleet.Original, &c.Original}, {"ours", sim.Fleet.Ours, &c.Ours}} {
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
