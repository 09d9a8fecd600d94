package node

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
)

// ENIs lists the ENIs of a node.
func ENIs(ctx context.Context, f *cli.Factory, opts *Options) error {
	n, err := read(ctx, f, opts, fleet.Query{ENIs: true})
	if err != nil {
		return err
	}
	return opts.ENIs.Print(f, inventory.ENIItems(n.Metadata.Name, n.ENIs), func(items []document.ENIItem) any {
		return document.ENIList{
			APIVersion: introspect.APIVersion, Kind: document.KindENIList, Node: n.Metadata.Name, SampledAt: n.SampledAt,
			Items: items, Partial: n.Error != nil, Errors: errorsOf(n),
		}
	})
}

// errorsOf returns what could not be read of a node, for the list in a document.
func errorsOf(n document.NodeIPAM) []document.NodeError {
	if n.Error == nil {
		return []document.NodeError{}
	}
	e := *n.Error
	e.Node = n.Metadata.Name
	return []document.NodeError{e}
}

// read opens the nodes and reads the one in opts.
func read(ctx context.Context, f *cli.Factory, opts *Options, q fleet.Query) (document.NodeIPAM, error) {
	nodes, err := opts.Open(ctx, f)
	if err != nil {
		return document.NodeIPAM{}, err
	}
	defer nodes.Close()
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	return sweep.One(ctx, f, nodes, opts.Name, q)
}
