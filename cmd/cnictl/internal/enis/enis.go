package enis

import (
	"context"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/pool"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
)

// Options are the arguments and flags of enis.
type Options struct {
	Names []string // of nodes; none: all
	List  *output.List[document.ENIItem]
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	opts := &Options{List: pool.NewENIList(true)}
	return opts.List.Command(f, &cobra.Command{
		Use:     "enis [NODE…]",
		Aliases: []string{"eni"},
		Short:   "List the ENIs of all nodes: card, device, kind, addresses, route table",
		Long: `List the ENIs of all nodes, or of the nodes given: network card and device index, kind,
assigned, cooling and free addresses, route table and subnet.`,
		Example: "  " + f.Name + " enis --filter 'free=0 !trunk'\n  " + f.Name + " enis --sort-by -free,node\n  " +
			f.Name + " enis --filter subnet=subnet-0123456789abcdef0 -o csv",
	}, func(ctx context.Context, args []string) error {
		opts.Names = args
		return Run(ctx, f, opts)
	})
}

// Run lists the ENIs once, or follows them until ctx ends.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	rows := func(nodes []document.NodeIPAM) []document.ENIItem {
		items := []document.ENIItem{}
		for _, n := range nodes {
			items = append(items, inventory.ENIItems(n.Metadata.Name, n.ENIs)...)
		}
		return items
	}
	if opts.List.Watching() {
		return follow.Rows(ctx, f, opts.Names, opts.List, rows)
	}
	nodes, err := access.FleetOf(ctx, f, opts.Names)
	if err != nil {
		return err
	}
	defer nodes.Close()
	list, interrupted := sweep.All(ctx, f, nodes, fleet.Query{ENIs: true})
	err = opts.List.Print(f, rows(list.Items), func(items []document.ENIItem) any {
		return document.ENIList{
			APIVersion: introspect.APIVersion, Kind: document.KindENIList, SampledAt: &list.SampledAt,
			Items: items, Partial: list.Partial, Errors: list.Errors,
		}
	})
	if err != nil {
		return err
	}
	return sweep.Verdict(f, list, interrupted)
}
