package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// endedBy is the signal that ended the tool.
type endedBy struct{ signal os.Signal }

func (e endedBy) Error() string { return e.signal.String() }

// untilSignal returns a context that ends with the first terminating signal: an interrupt,
// SIGTERM, or SIGHUP unless ignored, as under nohup. After that, an interrupt ends the
// process at once, as signals do by default. A second SIGTERM or SIGHUP does not: timeout(1)
// signals first the program and then its group, and on hang-up both a closing terminal and
// its shell send SIGHUP.
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

// exitCode returns the exit code of a tool that returned code and may have been ended by a
// signal. Users leave with an interrupt, and each command chooses its code for that; other
// signals give 128 plus their number, as in shells.
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
