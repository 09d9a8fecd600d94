package cli

import (
	"bytes"
	"fmt"
	"slices"

	"cnictl/cmd/cnictl/internal/encode"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
)

// Structured tells whether the output is a document rather than text for people.
func (f *Factory) Structured() bool {
	return f.Globals.Output == OutputJSON || f.Globals.Output == OutputYAML
}

// Wide tells whether tables show all their columns.
func (f *Factory) Wide() bool { return f.Globals.Output == OutputWide }

// PrintDocument writes a document in the form asked for; stream writes JSON on one
// line and YAML with a separator, for --watch.
func (f *Factory) PrintDocument(doc any, stream bool) error {
	var b []byte
	var err error
	switch {
	case f.Globals.Output == OutputYAML:
		b, err = encode.YAML(doc)
		if stream {
			b = append([]byte("---\n"), b...)
		}
	case stream:
		b, err = encode.JSONLine(doc)
	default:
		b, err = encode.JSON(doc)
	}
	if err != nil {
		return err
	}
	return f.write(b)
}

// PrintTable writes a table.
func (f *Factory) PrintTable(t table.Table) error { return f.PrintLines(t.Lines(f.TableOptions())) }

// PrintLines writes lines at once.
func (f *Factory) PrintLines(lines []string) error {
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return f.write(b.Bytes())
}

func (f *Factory) write(b []byte) error {
	if _, err := f.Streams.Out.Write(b); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// Warn writes a line to standard error.
func (f *Factory) Warn(format string, args ...any) {
	// Nothing is left to do when standard error cannot be written.
	_, _ = fmt.Fprintf(f.Streams.Err, "warning: "+format+"\n", args...)
}

// Verdict is the end of a command that read nodes: the exit code of a sweep, with a
// warning where nodes are missing. interrupted tells that the user gave up.
func (f *Factory) Verdict(list introspect.NodeIPAMList, interrupted bool) error {
	failed := 0
	for _, n := range list.Items {
		if n.Error != nil {
			failed++
		}
	}
	switch {
	case interrupted:
		return Exit(ExitInterrupted)
	case failed == 0:
		return nil
	case unread(list) == len(list.Items):
		if len(list.Items) == 1 {
			return f.NodeFailed(list.Items[0])
		}
		f.Warn("none of %d nodes could be read", failed)
		return Exit(ExitUnreachable)
	}
	f.Warn("%d of %d nodes could not be read, or only in part", failed, len(list.Items))
	if f.Globals.AllowPartial {
		return nil
	}
	return Exit(ExitPartial)
}

func unread(list introspect.NodeIPAMList) int {
	n := 0
	for _, item := range list.Items {
		if item.Summary == nil {
			n++
		}
	}
	return n
}

// HasOriginal tells whether a node of the original was read.
func HasOriginal(list introspect.NodeIPAMList) bool {
	return slices.ContainsFunc(list.Items, func(n introspect.NodeIPAM) bool { return n.Source == introspect.SourceV1 })
}
