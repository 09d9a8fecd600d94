// Command bench measures what one pod costs: aws-cni with its daemon, beside the
// process floor (testenv/cmd/floor) and the reference plugins ptp + host-local, all
// in one run, interleaved, on nodes of their own in the kernel's namespaces.
// Milliseconds don't travel between machines; the ratios it prints do.
//
// It needs what the demo needs: root, or user namespaces. The reference plugins are
// built from their module with the go command, so it runs in a checkout.
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

const usage = `bench measures ADD and DEL beside the process floor and ptp + host-local.

Usage: bench [--rounds N] [--quick] [--phases LIST] [--bin DIR]

  --rounds N   sequential pods per contender (default 200)
  --quick      a tenth of everything: checks that it runs, measures nothing useful
  --phases L   comma-separated list of start, sequential, ten, thirty, crowd (default: all)
  --bin DIR    where aws-cni, aws-k8s-agent and floor are (default: beside bench)
`

// Words that make the program a part of a node: the stand-in daemon, the network policy
// agent.
const (
	leanServerArg  = "lean-server"
	policyAgentArg = "policy-agent"
)

type options struct {
	rounds int
	quick  bool
	phases []string // empty: all
	bin    string
}

func main() {
	node.MaybeAgent()
	if len(os.Args) == 2 && os.Args[1] == leanServerArg {
		fmt.Fprintln(os.Stderr, "bench:", leanServer())
		os.Exit(1)
	}
	if len(os.Args) == 2 && os.Args[1] == policyAgentArg {
		fmt.Fprintln(os.Stderr, "bench:", policyAgent())
		os.Exit(1)
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(usage)
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n\n%s", err, usage)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if !testenv.Inside() {
		if err := findReference(o.bin); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1
		}
	}
	if err := testenv.Enter(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: the kernel does not allow the namespaces it needs (run as root): %v\n", err)
		return 1
	}
	if err := bench(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // run prints what is wrong
	fs.IntVar(&o.rounds, "rounds", 200, "")
	fs.BoolVar(&o.quick, "quick", false, "")
	fs.StringVar(&o.bin, "bin", "", "")
	phases := fs.String("phases", "", "")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("--rounds %d: must be at least 1", o.rounds)
	}
	if *phases != "" {
		o.phases = strings.Split(*phases, ",")
	}
	for _, p := range o.phases {
		if !slices.Contains(allPhases, p) {
			return o, fmt.Errorf("--phases: %q is not one of %s", p, strings.Join(allPhases, ", "))
		}
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

// referenceDir holds the reference plugins below the directory of binaries.
const referenceDir = "reference"

// findReference makes sure that ptp and host-local were built beside our programs.
func findReference(bin string) error {
	for _, name := range []string{"ptp", "host-local", "portmap"} {
		if _, err := os.Stat(filepath.Join(bin, referenceDir, name)); err != nil {
			return fmt.Errorf("find reference plugin (built by `make reference`): %w", err)
		}
	}
	return nil
}
