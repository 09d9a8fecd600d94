package node

import (
	"context"
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
)

// OpenNamed is the way to the nodes named, all of them when none is.
func OpenNamed(ctx context.Context, f *cli.Factory, names []string) (*fleet.Fleet, error) {
	nodes, err := f.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	known := nodes.Names()
	for _, name := range names {
		if !slices.Contains(known, name) {
			nodes.Close()
			return nil, f.NotFound(name, known)
		}
	}
	if len(names) > 0 {
		nodes.Keep(names)
	}
	return nodes, nil
}

// Follow reads the nodes again and again until ctx ends, and prints each whole reading.
func Follow(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet, q fleet.Query, print func(introspect.NodeIPAMList) error) error {
	return f.Watch(ctx, func(ctx context.Context) (bool, error) {
		list := nodes.Sweep(ctx, q)
		if ctx.Err() != nil {
			return false, nil // half a sweep would show nodes as lost
		}
		return cli.HasOriginal(list), print(list)
	}, nil)
}

// Failed names what could not be read, with the reasons.
func Failed(errs []introspect.NodeError) string {
	var parts []string
	for _, e := range errs {
		parts = append(parts, show.Safe(e.Node)+": "+show.Safe(e.Message))
	}
	return strings.Join(parts, "; ")
}
