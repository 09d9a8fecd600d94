package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"cnictl/tui/show"
)

// Exit codes. They are stable; "help exit-codes" lists them.
const (
	ExitOK          = 0
	ExitFailure     = 1   // unexpected
	ExitUsage       = 2   // unknown flag, command or format, bad argument
	ExitFindings    = 3   // doctor: findings at or above --fail-on
	ExitPartial     = 4   // some nodes could not be read
	ExitUnreachable = 5   // no node could be read, or access was denied
	ExitNotFound    = 6   // no such node
	ExitNoEvidence  = 7   // doctor: evidence was missing
	ExitInterrupted = 130 // a one-shot command was interrupted
)

// Error is a failure to show to the user: what happened, why, and what to do, a line each.
// Empty parts are omitted; an Error without What carries an exit code only.
type Error struct {
	Code          int
	What, Why, Do string
}

func (e *Error) Error() string {
	return strings.TrimSuffix(e.What+": "+e.Why, ": ")
}

// Usage returns the error for a mistake on the command line.
func Usage(format string, args ...any) *Error {
	return &Error{Code: ExitUsage, What: fmt.Sprintf(format, args...)}
}

// Exit returns an exit code without a message, for when the message has been printed.
func Exit(code int) *Error { return &Error{Code: code} }

// Interrupted reports whether err only results from the user interrupting the work. Such an error
// needs no report: there is nothing to fix.
func Interrupted(ctx context.Context, err error) bool {
	var e *Error
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.As(err, &e) && e.Code == ExitUnreachable)
}

// Report prints an error and returns its exit code. name is what the tool was called as.
func Report(w io.Writer, name string, err error) int {
	if err == nil || gone(err) {
		return ExitOK
	}
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: ExitFailure, What: err.Error()}
		if errors.Is(err, context.Canceled) {
			e = Exit(ExitInterrupted)
		}
	}
	if e.Code == ExitInterrupted && e.What == "" {
		e = &Error{Code: e.Code, What: "interrupted"}
	}
	if e.What == "" {
		return e.Code
	}
	do := e.Do
	if do == "" && e.Code == ExitUsage {
		do = name + " --help"
	}
	for _, line := range []struct{ label, text string }{{name + ": ", e.What}, {"  why: ", e.Why}, {"  try: ", do}} {
		if line.text != "" {
			// If standard error cannot be written, nothing is left to do.
			_, _ = fmt.Fprintln(w, line.label+show.Safe(line.text))
		}
	}
	return e.Code
}
