package fakeaws

import (
	"net/netip"
	"slices"
	"strconv"
)

// The network around a VPC's subnets. It exists only in answers: it routes no packet and
// reserves no address.

// Route is a route of a VPC's main route table.
type Route struct{ Destination, Target string }

// Reservation is a CIDR reservation of a subnet.
type Reservation struct {
	SubnetID string
	CIDR     netip.Prefix
	Type     string // prefix, explicit
}

// AddRoute adds a route to the main table of a VPC, in addition to those to its own CIDRs.
func (w *World) AddRoute(vpcID string, r Route) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.routes[vpcID] = append(w.routes[vpcID], r)
}

// AddReservation adds a CIDR reservation.
func (w *World) AddReservation(r Reservation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reservations = append(w.reservations, r)
}

type xmlRouteTable struct {
	ID           string           `xml:"routeTableId"`
	VPCID        string           `xml:"vpcId"`
	Owner        string           `xml:"ownerId"`
	Routes       []xmlRoute       `xml:"routeSet>item"`
	Associations []xmlAssociation `xml:"associationSet>item"`
}

type xmlRoute struct {
	CIDR    string `xml:"destinationCidrBlock"`
	Gateway string `xml:"gatewayId,omitempty"`
	NAT     string `xml:"natGatewayId,omitempty"`
	State   string `xml:"state"`
}

type xmlAssociation struct {
	ID    string `xml:"routeTableAssociationId"`
	Table string `xml:"routeTableId"`
	Main  bool   `xml:"main"`
	State string `xml:"associationState>state"`
}

func describeRouteTables(f *form) func(*World) (any, error) {
	q := readQuery(f, "rtb", "RouteTableId")
	of := func(v *VPC) attributes {
		return attributes{values: map[string][]string{"vpc-id": {v.ID}, "route-table-id": {"rtb-" + v.ID}, "association.main": {strconv.FormatBool(true)}}}
	}
	return func(w *World) (any, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err := q.filters.check(of(&VPC{})); err != nil {
			return nil, err
		}
		all, err := chosen(nil, w.vpcs, nil)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(v *VPC) bool { return len(q.ids) > 0 && !slices.Contains(q.ids, "rtb-"+v.ID) })
		return answer(q, "routeTableSet", all, of, func(v *VPC) xmlRouteTable {
			x := xmlRouteTable{
				ID: "rtb-" + v.ID, VPCID: v.ID, Owner: w.opts.AccountID,
				Associations: []xmlAssociation{{"rtbassoc-" + v.ID, "rtb-" + v.ID, true, "associated"}},
			}
			for _, c := range v.CIDRs {
				x.Routes = append(x.Routes, xmlRoute{CIDR: c.String(), Gateway: "local", State: "active"})
			}
			for _, r := range w.routes[v.ID] {
				one := xmlRoute{CIDR: r.Destination, State: "active"}
				if one.Gateway = r.Target; len(r.Target) > 4 && r.Target[:4] == "nat-" {
					one.Gateway, one.NAT = "", r.Target
				}
				x.Routes = append(x.Routes, one)
			}
			return x
		})
	}
}

type xmlReserved struct {
	ID    string `xml:"subnetCidrReservationId"`
	Net   string `xml:"subnetId"`
	CIDR  string `xml:"cidr"`
	Type  string `xml:"reservationType"`
	Owner string `xml:"ownerId"`
}

func getSubnetCIDRReservations(f *form) func(*World) (any, error) {
	q := query{filters: readFilters(f), page: readPaging(f, "scr", false)}
	subnet := f.required("SubnetId")
	of := func(r Reservation) attributes {
		return attributes{values: map[string][]string{"reservationType": {r.Type}, "subnet-id": {r.SubnetID}}}
	}
	return func(w *World) (any, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.subnets[subnet] == nil {
			return nil, noSubnet(subnet)
		}
		var all []Reservation
		for _, r := range w.reservations {
			if r.SubnetID == subnet {
				all = append(all, r)
			}
		}
		return answer(q, "subnetIpv4CidrReservationSet", all, of, func(r Reservation) xmlReserved {
			return xmlReserved{"scr-" + subnet, subnet, r.CIDR.String(), r.Type, w.opts.AccountID}
		})
	}
}
