package node

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/pool"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
)

// IPs lists the addresses of a node.
func IPs(ctx context.Context, f *cli.Factory, opts *Options) error {
	n, err := read(ctx, f, opts, fleet.Query{ENIs: true})
	if err != nil {
		return err
	}
	return opts.IPs.Print(f, pool.Addresses(n), func(rows []pool.Address) any {
		return introspect.AddressList{
			APIVersion: introspect.APIVersion, Kind: introspect.KindAddressList, Node: n.Metadata.Name, SampledAt: n.SampledAt,
			Items: pool.AddressItems(rows), Partial: n.Error != nil, Errors: errorsOf(n),
		}
	})
}
