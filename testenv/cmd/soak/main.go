// Command soak runs thousands of pods on one node of a cluster while the daemon is
// killed repeatedly. It fails if anything is left behind or assigned twice, or if a pod never
// starts.
//
// The first part drives containerd's CRI without a kubelet, the second goes through
// kubelet. Everything but AWS is the real program (testenv/cluster).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/node"
)

const usage = `soak starts and stops pods on one node, many at a time, while the daemon is killed repeatedly.

Usage: soak [--cri N] [--kubelet N] [--parallel N] [--kill-every D] [--quick] [--type T]
            [--within D] [--bin DIR] [--keep]

  --cri N         number of pods through containerd's CRI (default 2000)
  --kubelet N     number of pods through kubelet, afterwards (default 300)
  --parallel N    how many at a time (default 30)
  --kill-every D  how often aws-k8s-agent gets SIGKILL (default 20s; 0: never)
  --quick         a tenth of the pods, killed every 5 s
  --type T        instance type of the node (default m5.4xlarge: 232 pods' addresses)
  --within D      give up after this time (default 30m)
  --bin DIR       directory of this project's programs (default: that of soak)
  --keep          keep the directory with the logs

It exits with 0 only if every pod started, no two pods had the same address at the same
time, each address belonged to the node, and nothing is left. It needs root.
`

type options struct {
	sandboxes int // pods of the first part
	kubelet   int // pods of the second part
	parallel  int
	killEvery time.Duration
	instance  string
	within    time.Duration
	bin       string
	keep      bool
}

func main() {
	node.MaybeAgent()
	os.Exit(program.Main())
}

var program = frame.Program[options]{Name: "soak", Usage: usage, Parse: parse, Do: func(ctx context.Context, o options, out, _ io.Writer) error {
	if err := frame.Enter(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.within, fmt.Errorf("it took longer than %s", o.within))
	defer cancel()
	return run(ctx, o, out)
}}

// quickly is the divisor that --quick applies to the number of pods.
const quickly = 10

func parse(args []string) (options, error) {
	var o options
	var quick bool
	var fs flag.FlagSet
	fs.IntVar(&o.sandboxes, "cri", 2000, "")
	fs.IntVar(&o.kubelet, "kubelet", 300, "")
	fs.IntVar(&o.parallel, "parallel", 30, "")
	fs.DurationVar(&o.killEvery, "kill-every", 20*time.Second, "")
	fs.BoolVar(&quick, "quick", false, "")
	fs.StringVar(&o.instance, "type", "m5.4xlarge", "")
	fs.DurationVar(&o.within, "within", 30*time.Minute, "")
	fs.StringVar(&o.bin, "bin", "", "")
	fs.BoolVar(&o.keep, "keep", false, "")
	if err := frame.Parse(&fs, args); err != nil {
		return o, err
	}
	switch {
	case o.sandboxes < 0 || o.kubelet < 0 || o.sandboxes+o.kubelet == 0:
		return o, errors.New("--cri and --kubelet: no pods")
	case o.parallel < 1 || o.parallel > maxParallel:
		return o, fmt.Errorf("--parallel %d: from 1 to %d", o.parallel, maxParallel)
	case o.killEvery < 0 || o.within <= 0:
		return o, errors.New("--kill-every and --within: not a time")
	}
	if quick {
		o.sandboxes, o.kubelet, o.killEvery = (o.sandboxes+quickly-1)/quickly, (o.kubelet+quickly-1)/quickly, 5*time.Second
	}
	var err error
	o.bin, err = frame.Bin(o.bin)
	return o, err
}

// maxParallel stays below the number of pods that kubelet accepts on any large type.
const maxParallel = 100
