// Package sweep is what commands share that read several nodes: the way to those named,
// and the end where some could not be read.
package sweep

import (
	"context"
	"errors"
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
)

// Open is the way to the nodes named, all of them when none is.
func Open(ctx context.Context, f *cli.Factory, names []string) (*fleet.Fleet, error) {
	nodes, err := f.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	known := nodes.Names()
	var whole []string
	for _, name := range names {
		full := cli.WholeName(name, known)
		if !slices.Contains(known, full) {
			nodes.Close()
			return nil, f.NotFound(name, known)
		}
		whole = append(whole, full)
	}
	if len(whole) > 0 {
		nodes.Keep(whole)
	}
	return nodes, nil
}

// Failed names what could not be read, with the reasons.
func Failed(errs []introspect.NodeError) string {
	var parts []string
	for _, e := range errs {
		parts = append(parts, show.Safe(e.Node)+": "+show.Safe(e.Message))
	}
	return strings.Join(parts, "; ")
}

// ErrorOf says an error of a node as documents do.
func ErrorOf(name string, err error) introspect.NodeError {
	out := introspect.NodeError{Node: name, Reason: introspect.ReasonTransport, Message: err.Error()}
	var of *client.Error
	if errors.As(err, &of) {
		out.Reason, out.Message = of.Reason, of.Err.Error()
	}
	return out
}

// Interrupted is the end of a command that the user gave up while it read documents of
// nodes.
func Interrupted(errs []introspect.NodeError, nodes int) error {
	unread := 0
	for _, e := range errs {
		if e.Reason == introspect.ReasonCancelled {
			unread++
		}
	}
	return cli.Interrupted(unread, nodes)
}

// Partly is the end of a command that read documents of nodes and could not read some.
func Partly(f *cli.Factory, errs []introspect.NodeError, nodes int) error {
	var failed []introspect.NodeError
	for _, e := range errs {
		if e.Reason == introspect.ReasonCancelled {
			return Interrupted(errs, nodes)
		}
		if e.Reason != introspect.ReasonNoPod { // a node without a daemon lacks nothing
			failed = append(failed, e)
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case len(failed) >= nodes && nodes == 1:
		e := &cli.Error{Code: cli.ExitUnreachable, What: "node " + failed[0].Node + " could not be read", Why: failed[0].Message}
		if r := failed[0].Reason; r != introspect.ReasonNoEndpoint && r != introspect.ReasonNotFound && r != introspect.ReasonNotServed {
			e.Do = client.Hint(r)
		}
		return e
	case len(failed) >= nodes:
		f.Warn("none of %d nodes could be read: %s", nodes, f.Unread(failed))
		return cli.Exit(cli.ExitUnreachable)
	}
	f.Warn("%d of %d nodes could not be read: %s", len(failed), nodes, f.Unread(failed))
	if f.Globals.AllowPartial {
		return nil
	}
	return cli.Exit(cli.ExitPartial)
}
