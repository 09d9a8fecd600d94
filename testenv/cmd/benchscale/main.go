// Command benchscale measures the daemon beside upstream's figures of
// spec/performance.md: from start to serving, 150 pods on a fresh node, growth when EC2
// fails, memory and CPU at rest, under load and in a big cluster, and a start with 700
// pods. The nodes are simulated; EC2, the metadata service and kube-apiserver are real
// servers on the wire, and the kernel is the machine's.
//
// It prints each figure beside upstream's, the aim, what the baseline file has, and
// the least that the latencies of EC2 allow, with how that is computed. Its exit status
// is 1 when a figure misses what it must reach. It measures; tests never do.
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
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cnictl/testenv"
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
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(usage)
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "benchscale: %v\n\n%s", err, usage)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := testenv.Enter(); err != nil {
		fmt.Fprintf(os.Stderr, "benchscale: the kernel does not allow the namespaces it needs (run as root): %v\n", err)
		return 1
	}
	if err := bench(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "benchscale:", err)
		return 1
	}
	return 0
}

// mostRuns bounds the time that a run of the bench takes.
const mostRuns = 20

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("benchscale", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // run prints what is wrong
	fs.IntVar(&o.runs, "runs", 3, "")
	fs.BoolVar(&o.quick, "quick", false, "")
	fs.BoolVar(&o.calls, "calls", false, "")
	fs.BoolVar(&o.keep, "keep", false, "")
	fs.BoolVar(&o.write, "write", false, "")
	fs.StringVar(&o.baseline, "baseline", "", "")
	fs.StringVar(&o.bin, "bin", "", "")
	list := fs.String("phases", "", "")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	if o.runs < 1 || o.runs > mostRuns {
		return o, fmt.Errorf("--runs %d: must be 1 to %d", o.runs, mostRuns)
	}
	if o.write && o.baseline == "" {
		return o, errors.New("--write needs --baseline FILE")
	}
	if *list != "" {
		o.phases = strings.Split(*list, ",")
	}
	for _, p := range o.phases {
		if !slices.ContainsFunc(phases, func(known phase) bool { return known.name == p }) {
			return o, fmt.Errorf("--phases: unknown phase %q", p)
		}
	}
	if o.quick {
		o.runs = 1
	}
	if o.bin == "" {
		self, err := os.Executable()
		if err != nil {
			return o, err
		}
		o.bin = filepath.Dir(self)
	}
	return o, nil
}
