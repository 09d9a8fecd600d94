package node

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/enis"
)

// IPs lists the addresses of a node.
func IPs(ctx context.Context, f *cli.Factory, opts *Options) error {
	n, err := read(ctx, f, opts, fleet.Query{ENIs: true})
	if err != nil {
		return err
	}
	return opts.IPs.Print(f, enis.Addresses(n), func(rows []enis.AddressRow) any {
		return document.AddressList{
			APIVersion: introspect.APIVersion, Kind: document.KindAddressList, Node: n.Metadata.Name, SampledAt: n.SampledAt,
			Items: enis.AddressItems(rows), Partial: n.Error != nil, Errors: errorsOf(n),
		}
	})
}
