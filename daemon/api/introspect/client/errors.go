package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"cnictl/daemon/api/introspect"
)

// Error is a failed request.
type Error struct {
	Address string
	Path    string
	Reason  introspect.Reason
	Err     error // what happened, for people
}

func (e *Error) Error() string {
	return fmt.Sprintf("get %s from %s: %v", e.Path, e.Address, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Hint says what to do about the error, in one line.
func (e *Error) Hint() string {
	var fault *introspect.Fault
	if e.Reason == introspect.ReasonNotFound && errors.As(e.Err, &fault) {
		return "" // the daemon serves the path, and its fault says what does not exist
	}
	return Hint(e.Reason)
}

// Hint says what to do about a reason, in one line, or returns "".
func Hint(r introspect.Reason) string {
	switch r {
	case introspect.ReasonRefused:
		return "check that aws-node runs there, and its environment: DISABLE_INTROSPECTION=true turns the server off, INTROSPECTION_BIND_ADDRESS moves it to another port or a Unix socket"
	case introspect.ReasonNoSocket:
		return "check that aws-node runs there with INTROSPECTION_BIND_ADDRESS=unix:/path in its environment"
	case introspect.ReasonForbidden:
		return "run as root or as a member of the socket's group (its mode is 0660)"
	case introspect.ReasonTimeout:
		return "raise --node-timeout, or check the node's load and the firewalls in between"
	case introspect.ReasonUnresolved:
		return "check the name, or use the node's address in --targets"
	case introspect.ReasonNotHTTP, introspect.ReasonNotJSON, introspect.ReasonMalformed, introspect.ReasonStatus, introspect.ReasonNotFound:
		return "check the address: aws-node's introspection server listens on port 61679, its metrics on 61678"
	case introspect.ReasonTooLarge:
		return "check the address: an introspection response is never that large"
	case introspect.ReasonBusy:
		return "try again in a few seconds"
	case introspect.ReasonNoEndpoint:
		return "the node runs upstream or an older daemon; only its /v1/enis can be shown"
	}
	return ""
}

// ReasonOf returns the reason of any error of this package, "" for other errors.
func ReasonOf(err error) introspect.Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// Temporary reports whether an immediate retry may succeed: the connection was lost,
// neither refused nor cancelled.
func Temporary(err error) bool { return ReasonOf(err) == introspect.ReasonTransport }

// reasoned is an error of Options.Dial that carries a reason.
type reasoned interface {
	error
	NodeReason() introspect.Reason
}

// classify finds the reason of a transport error, and a text without the details of Go and
// the kernel.
func classify(ctx context.Context, err error) (introspect.Reason, error) {
	var dns *net.DNSError
	var netErr net.Error
	var known reasoned
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return introspect.ReasonCancelled, errors.New("cancelled")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), ctx.Err() != nil:
		return introspect.ReasonTimeout, errors.New("no complete answer in time")
	case errors.Is(err, errNotHTTP):
		return introspect.ReasonNotHTTP, errNotHTTP
	case errors.As(err, &known) && known.NodeReason() != "":
		return known.NodeReason(), known
	case errors.As(err, &dns) && !dns.IsTimeout:
		return introspect.ReasonUnresolved, fmt.Errorf("host name %q cannot be resolved", dns.Name)
	case errors.Is(err, fs.ErrNotExist):
		return introspect.ReasonNoSocket, errors.New("no such socket")
	case errors.Is(err, fs.ErrPermission):
		return introspect.ReasonForbidden, errors.New("permission denied")
	case errors.Is(err, syscall.ECONNREFUSED):
		return introspect.ReasonRefused, errors.New("connection refused")
	case errors.As(err, &netErr) && netErr.Timeout():
		return introspect.ReasonTimeout, errors.New("no complete answer in time")
	}
	return introspect.ReasonTransport, fmt.Errorf("connection lost: %w", cause(err))
}

// cause strips the wrappers that repeat the URL and the addresses.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
