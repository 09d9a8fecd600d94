package sweep

import (
	"fmt"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// Verdict is the error of a command that read nodes: the exit code of a sweep, with a warning
// if nodes are missing. Nodes that run no daemon, and need none, do not count. ended reports
// whether the user gave up.
func Verdict(f *cli.Factory, list document.NodeIPAMList, ended bool) error {
	var failed, unread []document.NodeIPAM
	var errs []document.NodeError // except those reported by warnMetricsOnly
	asked, cancelled := 0, 0
	for _, n := range list.Items {
		if n.Error != nil && n.Error.Reason == introspect.ReasonCancelled {
			cancelled++
		}
		if fleet.Failed(n) || n.State != document.StateNoDaemon {
			asked++
		}
		if fleet.Failed(n) {
			failed = append(failed, n)
			if n.State != document.StateMetricsOnly {
				errs = append(errs, document.NodeError{Node: n.Metadata.Name, Reason: n.Error.Reason, Message: n.Error.Message})
			}
			if n.Summary == nil {
				unread = append(unread, n)
			}
		}
	}
	switch {
	case ended:
		return interrupted(cancelled, len(list.Items))
	case len(failed) == 0:
		return nil
	}
	warnMetricsOnly(f, failed)
	if len(unread) == asked {
		if asked == 1 {
			return NodeFailed(f, unread[0])
		}
		f.Warn("none of %d nodes could be read: %s", asked, Unread(f, errs))
		return cli.Exit(cli.ExitUnreachable)
	}
	which := ""
	if len(errs) > 0 {
		which = ": " + Unread(f, errs)
	}
	f.Warn("%d of %d nodes could not be fully read%s", len(failed), len(list.Items), which)
	if f.Globals.AllowPartial {
		return nil
	}
	return cli.Exit(cli.ExitPartial)
}

// warnMetricsOnly warns that only metrics of some nodes were read, why, and what helps. Rows
// of nodes that were not read at all show the reason themselves; these have other values in
// the rows.
func warnMetricsOnly(f *cli.Factory, failed []document.NodeIPAM) {
	var names []string
	var why *document.NodeError
	for _, n := range failed {
		if n.State != document.StateMetricsOnly || n.Error == nil {
			continue
		}
		if names = append(names, n.Metadata.Name); why == nil {
			why = n.Error
		}
	}
	if why == nil {
		return
	}
	which := names[0]
	if len(names) > 1 {
		which += fmt.Sprintf(" and %d more", len(names)-1)
	}
	message := why.Message
	if why.Reason == introspect.ReasonRefused {
		message += "; its introspection server is off or on a Unix socket: use --via exec, or " + f.Name + " local on the node"
	}
	f.Warn("only the metrics of %s could be read: %s", which, message)
}
