package list

import (
	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
)

// NewENIs builds cnictl enis: the ENIs of all nodes in one list.
func NewENIs(f *cli.Factory) *cobra.Command {
	return ofNodes(ENIs(true), eniRows, func(r *Reading, items []document.ENIItem) any {
		return document.ENIList{
			APIVersion: introspect.APIVersion, Kind: document.KindENIList, SampledAt: &r.SampledAt,
			Items: items, Partial: r.Partial, Errors: r.Errors,
		}
	}).Build(f, &cobra.Command{
		Use:     "enis [NODE…]",
		Aliases: []string{"eni"},
		Short:   "List the ENIs of all nodes: card, device, kind, addresses, route table",
		Long: `List the ENIs of all nodes, or of the nodes given: network card and device index, kind,
used, cooling and free addresses, route table and subnet.`,
		Example: "  " + f.Name + " enis --filter 'free=0 !trunk'\n  " + f.Name + " enis --sort-by -free,node\n  " +
			f.Name + " enis --filter subnet=subnet-0123456789abcdef0 -o csv",
	})
}

func eniRows(nodes []document.NodeIPAM) []document.ENIItem {
	items := []document.ENIItem{}
	for _, n := range nodes {
		items = append(items, inventory.ENIItems(n.Metadata.Name, n.ENIs)...)
	}
	return items
}
