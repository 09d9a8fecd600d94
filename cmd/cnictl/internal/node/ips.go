package node

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
)

// addressList is the document of node ips.
type addressList struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Node       string     `json:"node"`
	SampledAt  *time.Time `json:"sampledAt"`
	Items      []address  `json:"items"`
}

// address is one address, or with Count > 1 the never used rest of a prefix.
type address struct {
	Address      string       `json:"address"` // of the rest of a prefix: the prefix
	Count        int          `json:"count"`
	CIDR         netip.Prefix `json:"cidr"`
	ENIID        string       `json:"eniId"`
	Card         int          `json:"card"`
	Device       int          `json:"device"`
	RouteTable   *int         `json:"routeTable"`
	State        string       `json:"state"`
	PodNamespace string       `json:"podNamespace"`
	PodName      string       `json:"podName"`
	AssignedAt   *time.Time   `json:"assignedAt"`
	UnassignedAt *time.Time   `json:"unassignedAt"`
}

// IPs lists the addresses of a node.
func IPs(ctx context.Context, f *cli.Factory, opts *Options) error {
	n, err := read(ctx, f, opts, fleet.Query{ENIs: true})
	if err != nil {
		return err
	}
	items := addresses(n.ENIs)
	if f.Structured() {
		return f.PrintDocument(addressList{introspect.APIVersion, introspect.KindAddressList, n.Metadata.Name, n.SampledAt, items}, false)
	}
	return f.PrintTable(addressTable(items, *n.SampledAt, f.Wide()))
}

// addresses flattens the ENIs, in their order.
func addresses(enis []introspect.NodeENI) []address {
	items := []address{}
	for _, e := range enis {
		for _, c := range e.CIDRs {
			of := address{Count: 1, CIDR: c.CIDR, ENIID: e.ID, Card: e.Card, Device: e.Device, RouteTable: e.RouteTable}
			for _, a := range c.Addresses {
				one := of
				one.Address, one.State = a.Address.String(), a.State
				one.PodNamespace, one.PodName = a.PodNamespace, a.PodName
				one.AssignedAt, one.UnassignedAt = a.AssignedAt, a.UnassignedAt
				items = append(items, one)
			}
			if never := c.Total - len(c.Addresses); never > 0 {
				of.Address, of.State, of.Count = c.CIDR.String(), introspect.AddressFree, never
				if !c.IsPrefix() {
					of.Address = c.CIDR.Addr().String()
				}
				items = append(items, of)
			}
		}
	}
	return items
}

func addressTable(items []address, now time.Time, wide bool) table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "ADDRESS"}, {Name: "STATE"}, {Name: "FOR", Right: true}, {Name: "ENI", Drop: 1}, {Name: "DEVICE", Right: true, Drop: 2}, {Name: "POD", Free: true},
	}}
	if wide {
		t.Columns = append(t.Columns, table.Column{Name: "CIDR"}, table.Column{Name: "CARD", Right: true}, table.Column{Name: "TABLE", Right: true})
	}
	for _, a := range items {
		state := a.State
		if a.Count > 1 {
			state = fmt.Sprintf("%s × %s", a.State, show.Count(a.Count))
		}
		pod := show.Unknown
		if a.PodName != "" {
			pod = a.PodNamespace + "/" + a.PodName
		}
		row := []table.Cell{
			{Text: a.Address}, {Text: state, Class: class(a.State)}, {Text: show.Since(since(a), now)}, {Text: a.ENIID}, {Text: fmt.Sprint(a.Device)}, {Text: pod},
		}
		if wide {
			row = append(row, table.Cells(a.CIDR.String(), fmt.Sprint(a.Card), show.Int(a.RouteTable))...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// since is when the address came into its state.
func since(a address) *time.Time {
	if a.State == introspect.AddressAssigned {
		return a.AssignedAt
	}
	return a.UnassignedAt
}

func class(state string) paint.Class {
	switch state {
	case introspect.AddressAssigned:
		return paint.Assigned
	case introspect.AddressCooling:
		return paint.Cooling
	}
	return paint.Free
}
