package node

import (
	"context"
	"strconv"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
)

// eniList is the document of node enis.
type eniList struct {
	APIVersion string                `json:"apiVersion"`
	Kind       string                `json:"kind"`
	Node       string                `json:"node"`
	SampledAt  *time.Time            `json:"sampledAt"`
	Items      []introspect.NodeENI  `json:"items"`
	Error      *introspect.NodeError `json:"error"`
}

// ENIs lists the ENIs of a node.
func ENIs(ctx context.Context, f *cli.Factory, opts *Options) error {
	n, err := read(ctx, f, opts, fleet.Query{ENIs: true})
	if err != nil {
		return err
	}
	if f.Structured() {
		return f.PrintDocument(eniList{introspect.APIVersion, introspect.KindENIList, n.Metadata.Name, n.SampledAt, n.ENIs, n.Error}, false)
	}
	return f.PrintTable(eniTable(n.ENIs, f.Wide()))
}

// read opens the way to the nodes and reads the one.
func read(ctx context.Context, f *cli.Factory, opts *Options, q fleet.Query) (introspect.NodeIPAM, error) {
	nodes, err := opts.Open(ctx)
	if err != nil {
		return introspect.NodeIPAM{}, err
	}
	defer nodes.Close()
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	return f.Single(ctx, nodes, opts.Name, q)
}

func eniTable(enis []introspect.NodeENI, wide bool) table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "ENI"}, {Name: "CARD", Right: true, Drop: 3}, {Name: "DEVICE", Right: true}, {Name: "KIND"},
		{Name: "ASSIGNED", Right: true}, {Name: "COOLING", Right: true}, {Name: "FREE", Right: true}, {Name: "TOTAL", Right: true, Drop: 4},
		{Name: "PREFIXES", Right: true, Drop: 5}, {Name: "TABLE", Right: true, Drop: 1}, {Name: "SUBNET", Free: true, Drop: 2},
	}}
	if wide {
		t.Columns = append(t.Columns, table.Column{Name: "CIDRS"})
	}
	for _, e := range enis {
		row := table.Cells(e.ID, strconv.Itoa(e.Card), strconv.Itoa(e.Device), kind(e),
			show.Count(e.Assigned), show.Count(e.Cooling), show.Count(e.Free), show.Count(e.Total),
			strconv.Itoa(e.Prefixes), show.Int(e.RouteTable), show.OrUnknown(e.SubnetID))
		if wide {
			cidrs := make([]string, len(e.CIDRs))
			for i, c := range e.CIDRs {
				cidrs[i] = c.CIDR.String()
			}
			row = append(row, table.Cell{Text: show.OrUnknown(strings.Join(cidrs, ","))})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// kind names what an ENI is.
func kind(e introspect.NodeENI) string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{{e.Primary, "primary"}, {e.Trunk, "trunk"}, {e.EFA, "efa"}, {e.Excluded, "excluded"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	if len(words) == 0 {
		return "secondary"
	}
	return strings.Join(words, ",")
}
