// Command benchscale compares the daemon with upstream's figures in docs/performance.md: from
// start to serving, 150 pods on a fresh node, growth when EC2 fails, memory and CPU at rest,
// under load and in a big cluster, and a start with 700 pods. The nodes are simulated; EC2,
// the metadata service and kube-apiserver are real servers on the wire, and the kernel is the
// machine's.
//
// It prints each figure next to upstream's, the aim, the baseline file's, and the minimum that
// EC2's latencies allow, with its computation. Its exit status is 1 if a figure misses
// its target. It measures; tests never do.
//
// It needs what the demo needs, and kube-apiserver from "make kube".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/node"
)

const usage = `benchscale measures start, growth, memory and CPU of the daemon.

Usage: benchscale [--phases LIST] [--runs N] [--quick] [--calls] [--keep]
                  [--baseline FILE] [--write] [--bin DIR]

  --phases L       comma-separated list of start, scale, faults, bound, load, restore (default: all)
  --runs N         how often each growth is measured (default 3)
  --quick          once, with a tenth of the load: checks that it runs, measures nothing useful
  --calls          print when each EC2 request of the median run was made
  --keep           keep the nodes' logs and print their directory
  --baseline FILE  compare with the figures of FILE
  --write          write the figures to FILE instead
  --bin DIR        where aws-cni and aws-k8s-agent are (default: beside benchscale)
`

type options struct {
	phases   []string // empty: all
	runs     int
	quick    bool
	calls    bool
	keep     bool
	baseline string
	write    bool
	bin      string
}

func main() {
	node.MaybeAgent()
	os.Exit(program.Main())
}

var program = frame.Program[options]{Name: "benchscale", Usage: usage, Parse: parse, Do: func(ctx context.Context, o options, out, progress io.Writer) error {
	if err := frame.Enter(); err != nil {
		return err
	}
	return bench(ctx, o, out, progress)
}}

// maxRuns bounds the duration of a bench.
const maxRuns = 20

func parse(args []string) (options, error) {
	var o options
	var fs flag.FlagSet
	fs.IntVar(&o.runs, "runs", 3, "")
	fs.BoolVar(&o.quick, "quick", false, "")
	fs.BoolVar(&o.calls, "calls", false, "")
	fs.BoolVar(&o.keep, "keep", false, "")
	fs.BoolVar(&o.write, "write", false, "")
	fs.StringVar(&o.baseline, "baseline", "", "")
	fs.StringVar(&o.bin, "bin", "", "")
	list := fs.String("phases", "", "")
	if err := frame.Parse(&fs, args); err != nil {
		return o, err
	}
	if o.runs < 1 || o.runs > maxRuns {
		return o, fmt.Errorf("--runs %d: must be 1 to %d", o.runs, maxRuns)
	}
	if o.write && o.baseline == "" {
		return o, errors.New("--write needs --baseline FILE")
	}
	var known []string
	for _, p := range phases {
		known = append(known, p.name)
	}
	var err error
	if o.phases, err = frame.Phases(*list, known...); err != nil {
		return o, err
	}
	if o.quick {
		o.runs = 1
	}
	o.bin, err = frame.Bin(o.bin)
	return o, err
}
