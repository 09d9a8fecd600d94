// Command bench measures the cost of one pod: aws-cni with its daemon, compared with the
// process floor (testenv/cmd/floor) and the reference plugins ptp + host-local, all
// in one run, interleaved, on separate nodes in the kernel's namespaces.
// Milliseconds don't transfer between machines; the printed ratios do.
//
// It needs what the demo needs: root, or user namespaces. The reference plugins are
// built from their module with the go command, so it runs in a checkout.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cnictl/testenv"
	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/node"
)

const usage = `bench measures ADD and DEL beside the process floor and ptp + host-local.

Usage: bench [--rounds N] [--quick] [--phases LIST] [--bin DIR]

  --rounds N   sequential pods per contender (default 200)
  --quick      a tenth of everything: checks that it runs, measures nothing useful
  --phases L   comma-separated list of start, sequential, ten, thirty, crowd, connections,
               flood, spoofing
               (default: all)
  --bin DIR    where aws-cni, aws-k8s-agent and floor are (default: beside bench)
`

// Arguments that run the program as part of a node: as the stand-in daemon or as the network
// policy agent.
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
	os.Exit(program.Main())
}

var program = frame.Program[options]{Name: "bench", Usage: usage, Parse: parse, Do: func(ctx context.Context, o options, out, _ io.Writer) error {
	if !testenv.Inside() {
		if err := findReference(o.bin); err != nil {
			return err
		}
	}
	if err := frame.Enter(); err != nil {
		return err
	}
	return bench(ctx, o, out)
}}

func parse(args []string) (options, error) {
	var o options
	var fs flag.FlagSet
	fs.IntVar(&o.rounds, "rounds", 200, "")
	fs.BoolVar(&o.quick, "quick", false, "")
	fs.StringVar(&o.bin, "bin", "", "")
	phases := fs.String("phases", "", "")
	if err := frame.Parse(&fs, args); err != nil {
		return o, err
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("--rounds %d: must be at least 1", o.rounds)
	}
	var err error
	if o.phases, err = frame.Phases(*phases, allPhases...); err != nil {
		return o, err
	}
	o.bin, err = frame.Bin(o.bin)
	return o, err
}

// referenceDir is the subdirectory of the binaries that holds the reference plugins.
const referenceDir = "reference"

// findReference checks that the reference plugins were built along with our programs.
func findReference(bin string) error {
	for _, name := range []string{"ptp", "host-local", "portmap"} {
		if _, err := os.Stat(filepath.Join(bin, referenceDir, name)); err != nil {
			return fmt.Errorf("find reference plugin (built by `make reference`): %w", err)
		}
	}
	return nil
}
