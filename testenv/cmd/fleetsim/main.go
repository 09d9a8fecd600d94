// Command fleetsim runs a simulated cluster (testenv/kube/fleetsim) for kubectl, cnictl and
// other readers of a fleet, until it gets a signal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/klog/v2" //nolint:depguard // only the libraries log through it
)

// Garbage collection took a third of a sweep's CPU time, which the reader of the fleet
// also needs. Trade memory for it, up to a limit.
const (
	gcPercent   = 400
	memoryLimit = 1 << 30
)

func main() {
	// Kubernetes' libraries log every client that disconnects in the middle of a stream,
	// to standard error, which may be the terminal of the screens.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		debug.SetMemoryLimit(memoryLimit)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
	case err != nil:
		fmt.Fprintf(os.Stderr, "fleetsim: %v\n", err)
		os.Exit(1)
	}
}
