package node

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
)

// IPs lists the addresses of a node.
func IPs(ctx context.Context, f *cli.Factory, opts *Options) error {
	n, err := read(ctx, f, opts, fleet.Query{ENIs: true})
	if err != nil {
		return err
	}
	return opts.IPs.Print(f, inventory.Addresses(n), func(rows []inventory.HeldAddress) any {
		return document.AddressList{
			APIVersion: introspect.APIVersion, Kind: document.KindAddressList, Node: n.Metadata.Name, SampledAt: n.SampledAt,
			Items: inventory.AddressItems(rows), Partial: n.Error != nil, Errors: errorsOf(n),
		}
	})
}
