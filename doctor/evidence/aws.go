package evidence

import (
	"net/netip"
	"time"
)

// UnreadAWS returns a reading in which no AWS source was read, for the given reason. Quotas are never read, and only a
// migration simulates policies: these two keep reasons of their own.
func UnreadAWS(reason string) *Reading {
	r := Unread(time.Time{}, reason)
	r.Quota.Missing, r.IAM.Missing = MissingQuota, MissingIAM
	return r
}

// TakeAWS takes the sources of EC2 and IAM from another reading.
func (r *Reading) TakeAWS(from *Reading) {
	r.Interfaces, r.Subnets, r.Reservations, r.Instances = from.Interfaces, from.Subnets, from.Reservations, from.Instances
	r.Quota, r.Groups, r.RouteTables, r.IAM = from.Quota, from.Groups, from.RouteTables, from.IAM
}

// IMDS is what the instance metadata service returns. If Token is not ok, the rest is unknown.
// Token is failed if the service answers with another status or, once it has issued a token, not
// with the instance ID and the MAC addresses.
type IMDS struct {
	Token        string          `json:"token,omitzero" enum:"ok,timeout,forbidden,not-found,refused,failed"`
	Failure      string          `json:"failure,omitempty"` // what it answered, if Token is failed
	Instance     string          `json:"instance,omitzero"`
	InstanceType string          `json:"instanceType,omitzero"`
	Zone         string          `json:"zone,omitzero"`
	VPCCIDRs     []netip.Prefix  `json:"vpcCIDRs,omitzero"`
	ENIs         []IMDSInterface `json:"enis,omitzero"`
}

// IMDSInterface is an interface as the metadata service lists it.
type IMDSInterface struct {
	ID       string         `json:"id,omitzero" key:"true"`
	MAC      string         `json:"mac,omitzero"`
	Device   int            `json:"device,omitzero"`
	Card     int            `json:"card,omitzero"`
	Subnet   string         `json:"subnet,omitzero"`
	IPs      []netip.Addr   `json:"ips,omitzero"` // primary one first
	Prefixes []netip.Prefix `json:"prefixes,omitzero"`
}

// IsPrimary reports whether it is the one that an instance starts with.
func (i IMDSInterface) IsPrimary() bool { return i.Card == 0 && i.Device == 0 }

// Interface is a network interface as EC2 describes it.
type Interface struct {
	ID                  string            `json:"id,omitzero" key:"true"`
	Status              string            `json:"status" enum:"available,in-use,attaching,detaching" default:"in-use"`
	Instance            string            `json:"instance,omitempty"`
	Card                int               `json:"card,omitzero"`
	Device              *int              `json:"device,omitzero"`
	Type                string            `json:"type" default:"interface"` // trunk, branch, efa, efa-only, …
	Subnet              string            `json:"subnet,omitzero"`
	Primary             netip.Addr        `json:"primary,omitzero"`
	IPs                 []netip.Addr      `json:"ips,omitzero"` // secondary ones
	Prefixes            []netip.Prefix    `json:"prefixes,omitzero"`
	Held                *int              `json:"held,omitzero"` // addresses it takes from its subnet; nil if unknown, see Holds
	Description         string            `json:"description,omitzero"`
	Requester           string            `json:"requester,omitzero"`
	Tags                map[string]string `json:"tags,omitzero"`
	Groups              []string          `json:"groups,omitzero"`
	CreatedAt           time.Time         `json:"createdAt,omitzero"`
	DeleteOnTermination bool              `json:"deleteOnTermination" default:"true"`
	Count               int               `json:"count,omitempty"` // number of identical entries; 0 means 1
}

// IsPrimary reports whether it is the one that an instance starts with.
func (i Interface) IsPrimary() bool { return i.Card == 0 && i.Device != nil && *i.Device == 0 }

// Holds is the number of addresses that the interface takes from its subnet.
func (i Interface) Holds() int {
	if i.Held != nil {
		return *i.Held
	}
	return 1 + len(i.IPs) + 16*len(i.Prefixes)
}

// Subnet is a subnet as EC2 describes it.
type Subnet struct {
	ID        string            `json:"id,omitzero" key:"true"`
	CIDR      netip.Prefix      `json:"cidr,omitzero"`
	Zone      string            `json:"zone,omitzero"`
	VPC       string            `json:"vpc,omitzero"`
	Available *int              `json:"available,omitzero"` // free addresses
	Tags      map[string]string `json:"tags,omitzero"`
	IPv6CIDR  *netip.Prefix     `json:"ipv6CIDR,omitzero"`
}

// Reservation is a CIDR reservation of a subnet.
type Reservation struct {
	Subnet string       `json:"subnet,omitzero"`
	CIDR   netip.Prefix `json:"cidr,omitzero"`
	Type   string       `json:"type,omitzero" enum:"prefix,explicit"`
}

// InstanceType holds the limits of an instance type.
type InstanceType struct {
	InstanceType string `json:"instanceType,omitzero"`
	Known        bool   `json:"known,omitzero"`
	MaxENIs      *int   `json:"maxENIs,omitzero"`
	IPv4PerENI   *int   `json:"ipv4PerENI,omitzero"`
	Hypervisor   string `json:"hypervisor,omitzero"`
	BareMetal    *bool  `json:"bareMetal,omitzero"`
	Trunk        *bool  `json:"trunk,omitzero"`
	BranchENIs   *int   `json:"branchENIs,omitzero"`
}

// Instance is an instance as EC2 describes it.
type Instance struct {
	ID           string    `json:"id,omitzero" key:"true"`
	InstanceType string    `json:"instanceType,omitzero"`
	State        string    `json:"state,omitzero"` // running, terminated, …
	StateAt      time.Time `json:"stateAt,omitzero"`
	HTTPEndpoint string    `json:"httpEndpoint,omitzero" enum:"enabled,disabled"`
	HTTPTokens   string    `json:"httpTokens,omitzero" enum:"optional,required"`
	HopLimit     *int      `json:"hopLimit,omitzero"`
	Profile      string    `json:"profile,omitempty"` // ARN of the instance profile
	Cluster      string    `json:"cluster,omitempty"` // from its tags
}

// Quota is the account's quota of network interfaces in the region.
type Quota struct {
	Limit *int `json:"limit,omitzero"`
	Used  *int `json:"used,omitzero"`
}

// SecurityGroup is a group with its rules.
type SecurityGroup struct {
	ID      string      `json:"id,omitzero" key:"true"`
	VPC     string      `json:"vpc,omitzero"`
	Ingress []GroupRule `json:"ingress,omitzero"`
	Egress  []GroupRule `json:"egress,omitzero"`
}

// GroupRule allows traffic with a peer, which is a CIDR or a group.
type GroupRule struct {
	Protocol string `json:"protocol,omitzero"`
	From     *int   `json:"from,omitzero"` // port
	To       *int   `json:"to,omitzero"`
	Peer     string `json:"peer,omitzero"`
}

// RouteTable is the route table of a subnet.
type RouteTable struct {
	ID     string     `json:"id,omitempty"`
	Subnet string     `json:"subnet,omitzero" key:"true"`
	Routes []VPCRoute `json:"routes,omitzero"`
}

// VPCRoute is a route of a VPC route table.
type VPCRoute struct {
	To     string `json:"to,omitzero"`
	Target string `json:"target,omitzero"`
}

// IAM is the result of simulating the role's policies.
type IAM struct {
	Role    string            `json:"role,omitzero"`
	Actions map[string]string `json:"actions,omitzero"` // from ec2:NAME to allowed or denied
}
