package nodes

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
)

// Options are what nodes was asked for.
type Options struct {
	Names []string // none: all
	Watch bool
}

// New builds the command; run takes the place of Run in tests of the flags.
func New(f *cli.Factory, run func(context.Context, *cli.Factory, *Options) error) *cobra.Command {
	if run == nil {
		run = Run
	}
	opts := &Options{}
	cmd := &cobra.Command{
		Use:   "nodes [NODE…]",
		Short: "List nodes: ENIs, addresses, warm targets, max-pods, state",
		Long: `List nodes: ENIs attached and attachable, addresses assigned, cooling and free,
the most the node can hold, warm targets, max-pods with its verdict, and the worst
that is wrong. A node that could not be read has ? in its cells and the reason in
STATUS; what is not known is -.`,
		Args:              cli.Args(0, -1, ""),
		ValidArgsFunction: f.CompleteNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Names = args
			return run(cmd.Context(), f, opts)
		},
	}
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "read again every --interval and print the rows that changed")
	return cmd
}

// Run lists the nodes once, or until ctx ends.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	all, err := f.Fleet(ctx)
	if err != nil {
		return err
	}
	defer all.Close()
	for _, name := range opts.Names {
		if !slices.Contains(all.Names(), name) {
			return f.NotFound(name, all.Names())
		}
	}
	if len(opts.Names) > 0 {
		all.Keep(opts.Names)
	}
	if opts.Watch {
		w := watcher{f: f, nodes: all, last: map[string]string{}}
		return f.Watch(ctx, w.show, nil)
	}
	list, interrupted := f.Sweep(ctx, all, fleet.Query{})
	if f.Structured() {
		err = f.PrintDocument(list, false)
	} else {
		err = f.PrintTable(Table(list.Items, f.Wide()))
	}
	if err != nil {
		return err
	}
	return f.Verdict(list, interrupted)
}

// Table lays nodes out.
func Table(items []introspect.NodeIPAM, wide bool) table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "NODE"}, {Name: "TYPE", Drop: 3}, {Name: "ENI", Right: true}, {Name: "ASSIGNED", Right: true}, {Name: "COOLING", Right: true, Drop: 5},
		{Name: "FREE", Right: true}, {Name: "LIMIT", Right: true, Drop: 4}, {Name: "WARM", Drop: 6}, {Name: "MAXPODS", Drop: 2}, {Name: "BRANCH", Right: true, Drop: 7},
	}}
	if wide {
		t.Columns = append(t.Columns, table.Column{Name: "MODE"}, table.Column{Name: "PREFIXES", Right: true}, table.Column{Name: "WAITING", Right: true},
			table.Column{Name: "INSTANCE"}, table.Column{Name: "VERSION"}, table.Column{Name: "UP", Right: true}, table.Column{Name: "SOURCE"})
	}
	t.Columns = append(t.Columns, table.Column{Name: "STATUS", Free: true})
	for _, n := range items {
		r := RowOf(n)
		cells := table.Cells(n.Metadata.Name, r.Type, r.ENIs, r.AssignedText, r.CoolingText, r.FreeText, r.LimitText, r.Warm, r.MaxPods, r.Branch)
		cells[8].Class = r.MaxPodsClass
		if wide {
			cells = append(cells, table.Cells(r.Mode, r.Prefixes, r.Waiting, r.Instance, r.Version, r.Up, r.Source)...)
		}
		t.Rows = append(t.Rows, append(cells, table.Cell{Text: r.Status, Class: r.Class}))
	}
	return t
}
