package cli

import (
	"fmt"
	"slices"

	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
)

// PrintTable writes a table, for people or as CSV.
func (f *Factory) PrintTable(t table.Table) error {
	if f.Globals.Output == OutputCSV {
		b, err := csvOf(t, !f.Globals.NoHeaders)
		if err != nil {
			return err
		}
		return f.write(b)
	}
	return f.PrintLines(t.Lines(f.TableOptions()))
}

// PrintLines writes lines at once.
func (f *Factory) PrintLines(lines []string) error { return f.write(joinLines(lines)) }

func (f *Factory) write(b []byte) error {
	if _, err := f.Streams.Out.Write(b); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// Note tells people on standard error what is no warning: that nothing was found.
func (f *Factory) Note(text string) {
	// Nothing is left to do when standard error cannot be written.
	_, _ = fmt.Fprintln(f.Streams.Err, text)
}

// Warn writes a line to standard error.
func (f *Factory) Warn(format string, args ...any) {
	// Nothing is left to do when standard error cannot be written.
	_, _ = fmt.Fprintf(f.Streams.Err, "warning: "+format+"\n", args...)
}

// Verdict is the end of a command that read nodes: the exit code of a sweep, with a
// warning where nodes are missing. Nodes that run no daemon, and need none, do not count.
// interrupted tells that the user gave up.
func (f *Factory) Verdict(list introspect.NodeIPAMList, interrupted bool) error {
	var failed, unread []introspect.NodeIPAM
	var errs []introspect.NodeError // but of those that warnMetricsOnly tells of
	asked, cancelled := 0, 0
	for _, n := range list.Items {
		if n.Error != nil && n.Error.Reason == introspect.ReasonCancelled {
			cancelled++
		}
		if fleet.Failed(n) || n.State != introspect.StateNoDaemon {
			asked++
		}
		if fleet.Failed(n) {
			failed = append(failed, n)
			if n.State != introspect.StateMetricsOnly {
				errs = append(errs, introspect.NodeError{Node: n.Metadata.Name, Reason: n.Error.Reason, Message: n.Error.Message})
			}
			if n.Summary == nil {
				unread = append(unread, n)
			}
		}
	}
	switch {
	case interrupted:
		return Interrupted(cancelled, len(list.Items))
	case len(failed) == 0:
		return nil
	}
	f.warnMetricsOnly(failed)
	if len(unread) == asked {
		if asked == 1 {
			return f.NodeFailed(unread[0])
		}
		f.Warn("none of %d nodes could be read: %s", asked, f.Unread(errs))
		return Exit(ExitUnreachable)
	}
	which := ""
	if len(errs) > 0 {
		which = ": " + f.Unread(errs)
	}
	f.Warn("%d of %d nodes could not be read, or only in part%s", len(failed), len(list.Items), which)
	if f.Globals.AllowPartial {
		return nil
	}
	return Exit(ExitPartial)
}

// warnMetricsOnly says why no more than metrics was read of nodes, and what helps: of
// nodes that were not read at all the row says it, these have other things to say in theirs.
func (f *Factory) warnMetricsOnly(failed []introspect.NodeIPAM) {
	var names []string
	var why *introspect.NodeError
	for _, n := range failed {
		if n.State != introspect.StateMetricsOnly || n.Error == nil {
			continue
		}
		if names = append(names, n.Metadata.Name); why == nil {
			why = n.Error
		}
	}
	if why == nil {
		return
	}
	which := show.Safe(names[0])
	if len(names) > 1 {
		which += fmt.Sprintf(" and %d more", len(names)-1)
	}
	message := show.Safe(why.Message)
	if why.Reason == introspect.ReasonRefused {
		message += "; its introspection is on a unix socket or off: use --via exec, or " + f.Name + " local on the node"
	}
	f.Warn("only the metrics of %s could be read: %s", which, message)
}

// HasOriginal tells whether a node of the original was read.
func HasOriginal(list introspect.NodeIPAMList) bool {
	return slices.ContainsFunc(list.Items, func(n introspect.NodeIPAM) bool { return n.Source == introspect.SourceV1 })
}
