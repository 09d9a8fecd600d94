// Command cnictl shows the pod addresses of EKS nodes. Installed as kubectl-cni it
// is "kubectl cni".
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/local"
	"cnictl/cmd/cnictl/internal/root"
)

// version is set by the linker: -X main.version=v1.2.3.
var version string

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	f := &cli.Factory{
		Streams: streams(ctx),
		Env:     os.LookupEnv,
		Now:     time.Now,
		Tick:    tick,
		Name:    root.InvokedAs(os.Args[0]),
		Version: versionOf(),
	}
	f.LocalTarget = local.SystemHost(f.Env).Target
	return exitCode(ctx, root.Main(ctx, f, os.Args[1:]))
}

func streams(ctx context.Context) *cli.Streams {
	stdout := int(os.Stdout.Fd())
	s := &cli.Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		OutTTY: term.IsTerminal(stdout), ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Size: func() (int, int) {
			width, height, err := term.GetSize(stdout)
			if err != nil {
				return 80, 24
			}
			return width, height
		},
	}
	if s.OutTTY {
		s.Resized = resizes(ctx)
		dumb := os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == ""
		s.Interactive = term.IsTerminal(int(os.Stdin.Fd())) && !dumb
	}
	return s
}

// resizes signals changes of the terminal's size until ctx ends; changes while a signal is
// pending are merged.
func resizes(ctx context.Context) <-chan struct{} {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	out := make(chan struct{}, 1)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
	}()
	return out
}

func tick(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
