package scrape

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Reason says why a pod was skipped. It is a label and a word of the log.
type Reason string

const (
	Unreachable Reason = "unreachable" // the API server gets no answer, or the pod is gone
	Refused     Reason = "refused"     // the API server forbids it, or whoever answers does
	TimedOut    Reason = "timeout"     // no complete answer in time
	TooLarge    Reason = "too-large"   // more than an ipamd can have
	Malformed   Reason = "malformed"   // not the metrics of an ipamd
	NotReached  Reason = "not-reached" // the poll ended before the pod's turn
)

// Reasons lists all.
func Reasons() []Reason {
	return []Reason{Unreachable, Refused, TimedOut, TooLarge, Malformed, NotReached}
}

// fault is an error with its reason.
type fault struct {
	reason Reason
	err    error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func faultf(r Reason, format string, args ...any) error {
	return &fault{r, fmt.Errorf(format, args...)}
}

// reasonOf finds the reason of an error that a scrape ended with.
func reasonOf(err error) Reason {
	var f *fault
	var timeout net.Error
	switch {
	case errors.As(err, &f):
		return f.reason
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut
	}
	return Unreachable
}
