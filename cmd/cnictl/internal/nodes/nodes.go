package nodes

import (
	"context"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// Options are the arguments and flags of nodes.
type Options struct {
	Names []string // none: all
	List  *output.List[*store.Node]
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	opts := &Options{List: List()}
	return opts.List.Command(f, &cobra.Command{
		Use:   "nodes [NODE…]",
		Short: "List nodes: ENIs, addresses, warm targets, max-pods, state",
		Long: `List nodes: ENIs and the limit for them, addresses assigned, cooling and free, how many the
node can hold, warm targets, max-pods with its verdict, and the worst problem. A node that
could not be read has ? in its cells and the reason in STATUS; - means unknown.

NODE is a name or a unique prefix of one, an instance ID, or an internal address. If --nodes
is given as well, it must be one of them.`,
		Example: `  # the worst first, with all columns
  {{.Command}} nodes -o wide --sort-by state
  # nodes of one type that can give out fewer than five addresses at once
  {{.Command}} nodes --filter 'type=m5.* free<5'
  # follow changes
  {{.Command}} nodes -w
  # names for a script
  {{.Command}} nodes --filter 'state!=ok' -o name`,
	}, func(ctx context.Context, args []string) error {
		opts.Names = args
		return Run(ctx, f, opts)
	})
}

// List returns the list of nodes. It has the same columns as the screens.
func List() *output.List[*store.Node] {
	return &output.List[*store.Node]{
		Columns: store.NodeColumns(), Whole: true,
		Key:  func(n *store.Node) string { return n.Metadata.Name },
		Item: func(n *store.Node) any { return n.Document() },
		Label: func(n *store.Node, key string) (string, bool) {
			if n.Object == nil {
				return "", false
			}
			value, ok := n.Object.Labels[key]
			return value, ok
		},
		Class:  Class,
		Free:   "state",
		Clocks: []string{"up", "age", "latency", "trend", "adds", "dels", "ec2"},
	}
}

// Class is the colour of a cell, by its meaning.
func Class(n *store.Node, column string) paint.Class {
	switch column {
	case "maxpods":
		if n.Summary != nil && n.Summary.MaxPods != nil && n.Summary.MaxPods.Verdict == introspect.MaxPodsOver {
			return paint.Warn
		}
	case "state":
		switch {
		case !n.Known && n.State == document.StateNoDaemon:
			return paint.Dim
		case !n.Known, n.Severity.Harms():
			return paint.Bad
		case n.Severity == document.SeverityWarning, !n.Well():
			return paint.Warn
		}
		return paint.OK
	}
	return paint.Plain
}

// Run lists the nodes once, or follows them until ctx ends.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	if opts.List.Watching() {
		return opts.follow(ctx, f)
	}
	nodes, err := access.FleetOf(ctx, f, opts.Names)
	if err != nil {
		return err
	}
	defer nodes.Close()
	list, interrupted := sweep.All(ctx, f, nodes, fleet.Query{})
	err = opts.List.Print(f, rows(list), func(chosen []*store.Node) any {
		doc := document.NodeDocumentList{
			APIVersion: list.APIVersion, Kind: list.Kind, Items: make([]document.NodeDocument, len(chosen)),
			Partial: list.Partial, Errors: list.Errors, SampledAt: list.SampledAt,
		}
		for i, n := range chosen {
			doc.Items[i] = n.Document()
		}
		return doc
	})
	if err != nil {
		return err
	}
	return sweep.Verdict(f, list, interrupted)
}

func rows(list document.NodeIPAMList) []*store.Node {
	out := make([]*store.Node, len(list.Items))
	for i, n := range list.Items {
		out[i] = store.NewNode(n)
	}
	return out
}
