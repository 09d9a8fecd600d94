package scrape

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Reason is why a pod was skipped. It is used as a metric label and in the log.
type Reason string

const (
	Unreachable Reason = "unreachable" // the API server gets no response, or the pod is gone
	Refused     Reason = "refused"     // forbidden by the API server, or by whatever responded
	TimedOut    Reason = "timeout"     // no complete answer in time
	TooLarge    Reason = "too-large"   // more than an ipamd can send
	Malformed   Reason = "malformed"   // not the metrics of an ipamd
	NotReached  Reason = "not-reached" // the poll ended before the pod's turn
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{Unreachable, Refused, TimedOut, TooLarge, Malformed, NotReached}
}

// fault is an error with the reason to skip a pod.
type fault struct {
	reason Reason
	err    error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func faultf(r Reason, format string, args ...any) error {
	return &fault{r, fmt.Errorf(format, args...)}
}

// reasonOf returns the reason for an error of a scrape.
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
