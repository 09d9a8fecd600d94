package nodes

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// follow prints the nodes as they come, go and change, until ctx ends.
func (opts *Options) follow(ctx context.Context, f *cli.Factory) error {
	return follow.Fleet(ctx, f, follow.Options{Names: opts.Names, Order: opts.List.Ordered(), Show: func(now follow.Moment) error {
		var rows []*store.Node
		for _, n := range now.View.Nodes {
			if n.State != document.StateAPIOnly || n.Error != nil { // it was asked
				rows = append(rows, n)
			}
		}
		for _, name := range now.Gone {
			rows = append(rows, store.NewNode(gone(name)))
		}
		opts.List.Forget(now.Back)
		return opts.List.Follow(f, rows)
	}})
}

// gone is the last row of a node that left.
func gone(name string) document.NodeIPAM {
	return document.NodeIPAM{
		APIVersion: introspect.APIVersion, Kind: document.KindNode, Metadata: document.ObjectMeta{Name: name}, State: document.StateUnreachable,
		Error: &document.NodeError{Node: name, Reason: introspect.ReasonNotFound, Message: "the node left the cluster"},
	}
}
