package node

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/enis"
)

// ENIs lists the ENIs of a node.
func ENIs(ctx context.Context, f *cli.Factory, opts *Options) error {
	n, err := read(ctx, f, opts, fleet.Query{ENIs: true})
	if err != nil {
		return err
	}
	return opts.ENIs.Print(f, enis.Items(n.Metadata.Name, n.ENIs), func(items []introspect.ENIItem) any {
		return introspect.ENIList{
			APIVersion: introspect.APIVersion, Kind: introspect.KindENIList, Node: n.Metadata.Name, SampledAt: n.SampledAt,
			Items: items, Partial: n.Error != nil, Errors: errorsOf(n),
		}
	})
}

// errorsOf is what could not be read of a node, for the list of a document.
func errorsOf(n introspect.NodeIPAM) []introspect.NodeError {
	if n.Error == nil {
		return []introspect.NodeError{}
	}
	e := *n.Error
	e.Node = n.Metadata.Name
	return []introspect.NodeError{e}
}

// read opens the way to the nodes and reads the one.
func read(ctx context.Context, f *cli.Factory, opts *Options, q fleet.Query) (introspect.NodeIPAM, error) {
	nodes, err := opts.Open(ctx, f)
	if err != nil {
		return introspect.NodeIPAM{}, err
	}
	defer nodes.Close()
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	return sweep.One(ctx, f, nodes, opts.Name, q)
}
