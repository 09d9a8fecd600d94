// Command benchtui measures cnictl and its screens as users see them: the built binary on a
// pseudo-terminal, with a simulated fleet in a separate process, all on the loopback. It
// prints each figure next to its target and that of eks-node-viewer.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cnictl/testenv/cmd/internal/frame"
)

const usage = `benchtui measures cnictl and its screens before a simulated fleet.

Usage: benchtui [--quick] [--phases LIST] [--for D] [--bin DIR] [--source DIR]

  --quick      1,000 nodes, 200 keys, short pauses: checks that it runs, measures nothing useful
  --phases L   comma-separated list of (default: all before soak)
                 first   exec to the first rows and to all, once LIST is answered
                 sweep   cnictl nodes reads every node
                 screen  the screens read every node; keys; cost at rest
                 start   what every command costs before it does anything; one node
                 rest    the screens when nothing is due
                 view    a frame, by the Go benchmarks of tui/app
                 soak    keys and pauses for a long time: memory, goroutines, sockets, frames;
                         exit 1 if one grows or exceeds its limit
                 doctor  cnictl doctor finds what is planted in 1,000 nodes; exit 1 if it does
                         not count exactly or exceeds its limit
                 archive cnictl doctor --bundle reads 1 GB of logs; exit 1 if it exceeds its limits
                 doctor-soak  cnictl doctor on a healthy fleet repeatedly; exit 1 on a finding
  --for D      how long a soak lasts (default 10m; with --quick 30s)
  --bin DIR    where cnictl and fleetsim are (default: beside benchtui)
  --source DIR the module, for the phase view, which runs Go benchmarks (default: here)
`

type options struct {
	sizes  []int // of the fleets; most phases use the last
	keys   int
	rest   time.Duration // how long the processor time of an idle screen is measured
	runs   int           // of a short command
	rounds string        // of a Go benchmark, as its -benchtime
	phases []string      // empty: all before soak
	lasts  time.Duration // duration of a soak
	bin    string
	source string
}

func main() { os.Exit(program.Main()) }

var program = frame.Program[options]{Name: "benchtui", Usage: usage, Parse: parse, Do: func(ctx context.Context, o options, out, _ io.Writer) error {
	return bench(ctx, o, out)
}}

// longest leaves a fleet time to exit on its own.
const longest = fleetLimit / 2

func parse(args []string) (options, error) {
	o := options{sizes: []int{1000, 5000}, keys: 2000, rest: 20 * time.Second, runs: 20, rounds: "200x", lasts: 10 * time.Minute}
	var fs flag.FlagSet
	quick := fs.Bool("quick", false, "")
	phases := fs.String("phases", "", "")
	lasts := fs.Duration("for", 0, "")
	fs.StringVar(&o.bin, "bin", "", "")
	fs.StringVar(&o.source, "source", ".", "")
	if err := frame.Parse(&fs, args); err != nil {
		return o, err
	}
	if *quick {
		o.sizes, o.keys, o.rest, o.runs, o.rounds = []int{1000}, 200, 2*time.Second, 5, "5x"
		o.lasts = 30 * time.Second
	}
	switch {
	case *lasts < 0 || *lasts > longest:
		return o, fmt.Errorf("--for %v: want a time up to %v", *lasts, longest)
	case *lasts > 0:
		o.lasts = *lasts
	}
	var err error
	if o.phases, err = frame.Phases(*phases, allPhases...); err != nil {
		return o, err
	}
	if o.bin, err = frame.Bin(o.bin); err != nil {
		return o, err
	}
	for _, name := range []string{"cnictl", "fleetsim"} {
		if _, err := os.Stat(filepath.Join(o.bin, name)); err != nil {
			return o, fmt.Errorf("find the built binaries (make build): %w", err)
		}
	}
	return o, nil
}
