// Command demo runs three simulated EC2 instances of different types with real
// daemons and the real plugin on a simulated AWS, with pods coming and going, and
// shows them with `cnictl tui` (without a terminal with `cnictl status -w`). With
// --once it instead does one bounded round and checks every step. With --fleet N it
// shows a simulated fleet (testenv/kube/fleetsim) of N nodes, which needs no privileges.
//
// It needs root, or a kernel that lets ordinary users create user namespaces. It does not
// touch the machine's own network, and leaves nothing behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/klog/v2" //nolint:depguard // only the libraries log through it

	"cnictl/testenv"
	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/kube/fleetsim"
	"cnictl/testenv/node"
)

const usage = `demo runs simulated EC2 nodes with the real daemon and plugin.

Usage: demo [--once | --fleet N] [--bin DIR] [--keep]

Without flags, pods come and go on three nodes, and cnictl tui shows them.

  --once     run one round without a terminal: add pods, ping between all of them and
             delete them; exits with 0 only if all steps succeed and nothing is left over
  --fleet N  simulate a fleet of N nodes instead, at most 5000, some of them with problems;
             without a terminal, print what cnictl status and cnictl nodes show
  --bin DIR  directory with aws-k8s-agent, aws-cni and cnictl (default: that of demo)
  --keep     keep the directory with the logs
`

type options struct {
	once  bool
	fleet int // 0: three real nodes
	bin   string
	keep  bool

	lifeline *os.File // of the terminal's watchdog; nil if none
}

func main() {
	// Kubernetes' libraries log every client that disconnects in the middle of a stream,
	// to standard error, which may be the terminal of the screens.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	maybeWatchdog()
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
		fmt.Fprintf(os.Stderr, "demo: %v\n\n%s", err, usage)
		return 2
	}
	if !o.once {
		lifeline, err := guardTerminal()
		if err != nil {
			fmt.Fprintln(os.Stderr, "demo: guard the terminal:", err)
			return 1
		}
		o.lifeline = lifeline
	}
	if o.fleet > 0 {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		return demo(ctx, o)
	}
	if err := testenv.Enter(); err != nil {
		fmt.Fprintf(os.Stderr, "demo: the kernel does not allow the namespaces it needs: %v\n", err)
		fmt.Fprintln(os.Stderr, `run it as root (sudo make demo), or allow user namespaces:
  sysctl user.max_user_namespaces    must not be 0
  sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0    where they exist`)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return demo(ctx, o)
}

func parse(args []string) (options, error) {
	var o options
	var fs flag.FlagSet
	fs.BoolVar(&o.once, "once", false, "")
	fs.IntVar(&o.fleet, "fleet", 0, "")
	fs.StringVar(&o.bin, "bin", "", "")
	fs.BoolVar(&o.keep, "keep", false, "")
	if err := frame.Parse(&fs, args); err != nil {
		return o, err
	}
	if o.fleet < 0 || o.fleet > fleetsim.MaxNodes || (o.fleet > 0 && o.once) {
		return o, fmt.Errorf("--fleet %d: want 1 to %d nodes, without --once", o.fleet, fleetsim.MaxNodes)
	}
	var err error
	if o.bin, err = frame.Bin(o.bin); err != nil {
		return o, err
	}
	needed := []string{node.DaemonBinary, node.PluginBinary, cnictlBinary}
	if o.fleet > 0 {
		needed = []string{cnictlBinary}
	}
	for _, name := range needed {
		if _, err := os.Stat(filepath.Join(o.bin, name)); err != nil {
			return o, fmt.Errorf("find program: %w (make build puts it there; --bin DIR names another place)", err)
		}
	}
	return o, nil
}

// demo runs the chosen mode and removes its directory unless it is still useful.
func demo(ctx context.Context, o options) int {
	dir, err := newDir()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	switch {
	case o.once:
		err = once(ctx, o, dir.path)
	case o.fleet > 0:
		err = fleet(ctx, o, dir.path, os.Stdout)
	default:
		err = live(ctx, o, dir.path)
	}
	code := 0
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		code = 1
	}
	if o.keep || err != nil {
		fmt.Fprintln(os.Stderr, "demo: logs are in", dir.path)
		err = dir.keep()
	} else {
		err = dir.remove()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		code = 1
	}
	return code
}
