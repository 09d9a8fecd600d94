package list

import (
	"context"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/tables"
)

// NewNodes builds cnictl nodes: a row for each node.
func NewNodes(f *cli.Factory) *cobra.Command {
	return nodesCommand().Build(f, &cobra.Command{
		Use:   "nodes [NODE…]",
		Short: "List nodes: ENIs, addresses, warm targets, max-pods, state",
		Long: `List nodes: ENIs and the limit for them, addresses used, cooling and free, how many the
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
	})
}

// Nodes lists the nodes once.
func Nodes(ctx context.Context, f *cli.Factory) error {
	c := nodesCommand()
	if err := c.Check(f); err != nil {
		return err
	}
	return c.Run(ctx, f, nil)
}

func nodesCommand() Command[*store.Node] {
	l := nodeList()
	return Command[*store.Node]{List: l, Rows: nodeRows, Document: nodeDocument, Follow: nodesFollowed(l)}
}

// nodeList has the same columns as the screens.
func nodeList() *output.List[*store.Node] {
	return &output.List[*store.Node]{
		Columns: tables.Nodes(), Whole: true,
		Key:  func(n *store.Node) string { return n.Metadata.Name },
		Item: func(n *store.Node) any { return n.Document() },
		Label: func(n *store.Node, key string) (string, bool) {
			if n.Object == nil {
				return "", false
			}
			value, ok := n.Object.Labels[key]
			return value, ok
		},
		Class:  NodeClass,
		Free:   "state",
		Clocks: []string{"up", "age", "latency", "trend", "adds", "dels", "ec2"},
	}
}

// NodeClass is the colour of a cell, by its meaning.
func NodeClass(n *store.Node, column string) paint.Class {
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

func nodeRows(_ context.Context, _ *cli.Factory, r *Reading) ([]*store.Node, error) {
	out := make([]*store.Node, len(r.Items))
	for i, n := range r.Items {
		out[i] = store.NewNode(n)
	}
	return out, nil
}

func nodeDocument(r *Reading, chosen []*store.Node) any {
	doc := document.NodeDocumentList{
		APIVersion: r.APIVersion, Kind: r.Kind, Items: make([]document.NodeDocument, len(chosen)),
		Partial: r.Partial, Errors: r.Errors, SampledAt: r.SampledAt,
	}
	for i, n := range chosen {
		doc.Items[i] = n.Document()
	}
	return doc
}

// nodesFollowed prints the nodes as they come, go and change.
func nodesFollowed(l *output.List[*store.Node]) func(context.Context, *cli.Factory, []string) error {
	return func(ctx context.Context, f *cli.Factory, names []string) error {
		return follow.Fleet(ctx, f, follow.Options{Names: names, Order: l.Ordered(), Show: func(now follow.Moment) error {
			var rows []*store.Node
			for _, n := range now.View.Nodes {
				if n.State != document.StateAPIOnly || n.Error != nil { // it was asked
					rows = append(rows, n)
				}
			}
			for _, name := range now.Gone {
				rows = append(rows, store.NewNode(gone(name)))
			}
			l.Forget(now.Back)
			return l.Follow(f, rows)
		}})
	}
}

// gone is the last row of a node that left.
func gone(name string) document.NodeIPAM {
	return document.NodeIPAM{
		APIVersion: introspect.APIVersion, Kind: document.KindNode, Metadata: document.ObjectMeta{Name: name}, State: document.StateUnreachable,
		Error: &document.NodeError{Node: name, Reason: introspect.ReasonNotFound, Message: "the node left the cluster"},
	}
}
