package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// endedBy is the signal that asked the tool to end.
type endedBy struct{ signal os.Signal }

func (e endedBy) Error() string { return e.signal.String() }

// untilSignal returns a context that ends with the first terminating signal: an
// interrupt, SIGTERM, or SIGHUP unless that is ignored, as under nohup. After it an
// interrupt ends the process at once, as signals do by default. A second SIGTERM or
// SIGHUP does not: timeout(1) sends its signal to the program and then to the group, a
// terminal that closes and the shell in it both hang up.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-ctx.Done():
		case s := <-signals:
			if s == os.Interrupt {
				signal.Stop(signals)
			} else {
				signal.Reset(os.Interrupt)
			}
			cancel(endedBy{s})
		}
	}()
	return ctx, func() { cancel(nil) }
}

// exitCode is the exit code of a tool that returned code and may have been ended by a
// signal. An interrupt is how a user leaves, and each command chooses its code for it;
// other signals give 128 plus their number, as in shells.
func exitCode(ctx context.Context, code int) int {
	var by endedBy
	if !errors.As(context.Cause(ctx), &by) || by.signal == os.Interrupt {
		return code
	}
	if number, ok := by.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return code
}
