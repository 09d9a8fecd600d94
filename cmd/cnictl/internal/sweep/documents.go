package sweep

import (
	"errors"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet/document"
)

// Failed lists what could not be read, with the reasons.
func Failed(errs []document.NodeError) string {
	var parts []string
	for _, e := range errs {
		parts = append(parts, e.Node+": "+e.Message)
	}
	return strings.Join(parts, "; ")
}

// ErrorOf converts an error of a node to its document form.
func ErrorOf(name string, err error) document.NodeError {
	out := document.NodeError{Node: name, Reason: introspect.ReasonTransport, Message: err.Error()}
	var of *client.Error
	if errors.As(err, &of) {
		out.Reason, out.Message = of.Reason, of.Err.Error()
	}
	return out
}

// Interrupted is the error of a command that the user interrupted while it read documents of
// nodes.
func Interrupted(errs []document.NodeError, nodes int) error {
	unread := 0
	for _, e := range errs {
		if e.Reason == introspect.ReasonCancelled {
			unread++
		}
	}
	return interrupted(unread, nodes)
}

// Partly is the error of a command that could not read the documents of some nodes.
func Partly(f *cli.Factory, errs []document.NodeError, nodes int) error {
	var failed []document.NodeError
	for _, e := range errs {
		if e.Reason == introspect.ReasonCancelled {
			return Interrupted(errs, nodes)
		}
		if e.Reason != introspect.ReasonNoPod { // a node without a daemon has no documents
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
		f.Warn("none of %d nodes could be read: %s", nodes, Unread(f, failed))
		return cli.Exit(cli.ExitUnreachable)
	}
	f.Warn("%d of %d nodes could not be read: %s", len(failed), nodes, Unread(f, failed))
	if f.Globals.AllowPartial {
		return nil
	}
	return cli.Exit(cli.ExitPartial)
}
