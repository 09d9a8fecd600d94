package node

import (
	"context"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
)

// ask reads documents of the node in opts through its client, and returns the node's name.
// what names the documents in the error for a node that does not have them.
func ask(ctx context.Context, f *cli.Factory, opts *Options, what string,
	read func(context.Context, *client.Client) error) (string, error) {
	nodes, err := opts.Open(ctx, f)
	if err != nil {
		return "", err
	}
	defer nodes.Close()
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	return Ask(ctx, f, nodes, opts.Name, what, read)
}

// Ask is ask for a fleet that is already open.
func Ask(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet, name, what string,
	read func(context.Context, *client.Client) error) (string, error) {
	if name == "" {
		name = nodes.Names()[0]
	}
	errs := nodes.Ask(ctx, []string{name}, func(ctx context.Context, _ int, _ fleet.Target, c *client.Client) error {
		return read(ctx, c)
	})
	if len(errs) == 0 {
		return name, access.NotFound(f, name, nodes.Names())
	}
	return name, sweep.DocumentFailed(name, what, f.Name+" node show "+name+" shows everything it reports", errs[0])
}
