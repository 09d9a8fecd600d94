package evidence

import (
	"net/netip"
	"time"
)

// IMDS is what the instance metadata service returns. If Token is not ok, the rest is unknown.
// Token is failed if the service answers with another status or, once it has issued a token, not
// with the instance ID and the MAC addresses.
type IMDS struct {
	Token        string          `json:"token" enum:"ok,timeout,forbidden,not-found,refused,failed"`
	Failure      string          `json:"failure,omitempty"` // what it answered, if Token is failed
	Instance     string          `json:"instance"`
	InstanceType string          `json:"instanceType"`
	Zone         string          `json:"zone"`
	VPCCIDRs     []netip.Prefix  `json:"vpcCIDRs"`
	ENIs         []IMDSInterface `json:"enis"`
}

// IMDSInterface is an interface as the metadata service lists it.
type IMDSInterface struct {
	ID       string         `json:"id" key:"true"`
	MAC      string         `json:"mac"`
	Device   int            `json:"device"`
	Card     int            `json:"card"`
	Subnet   string         `json:"subnet"`
	IPs      []netip.Addr   `json:"ips"` // primary one first
	Prefixes []netip.Prefix `json:"prefixes"`
}

// Interface is a network interface as EC2 describes it.
type Interface struct {
	ID                  string            `json:"id" key:"true"`
	Status              string            `json:"status" enum:"available,in-use,attaching,detaching" default:"in-use"`
	Instance            string            `json:"instance,omitempty"`
	Card                int               `json:"card"`
	Device              *int              `json:"device"`
	Type                string            `json:"type" default:"interface"` // trunk, branch, efa, efa-only, …
	Subnet              string            `json:"subnet"`
	Primary             netip.Addr        `json:"primary,omitzero"`
	IPs                 []netip.Addr      `json:"ips"` // secondary ones
	Prefixes            []netip.Prefix    `json:"prefixes"`
	Held                *int              `json:"held"` // addresses it takes from its subnet; nil if unknown, see Holds
	Description         string            `json:"description"`
	Requester           string            `json:"requester"`
	Tags                map[string]string `json:"tags"`
	Groups              []string          `json:"groups"`
	CreatedAt           time.Time         `json:"createdAt,omitzero"`
	DeleteOnTermination bool              `json:"deleteOnTermination" default:"true"`
	Count               int               `json:"count,omitempty"` // number of identical entries; 0 means 1
}

// Holds is the number of addresses that the interface takes from its subnet.
func (i Interface) Holds() int {
	if i.Held != nil {
		return *i.Held
	}
	return 1 + len(i.IPs) + 16*len(i.Prefixes)
}

// Subnet is a subnet as EC2 describes it.
type Subnet struct {
	ID        string            `json:"id" key:"true"`
	CIDR      netip.Prefix      `json:"cidr"`
	Zone      string            `json:"zone"`
	VPC       string            `json:"vpc"`
	Available *int              `json:"available"` // free addresses
	Tags      map[string]string `json:"tags"`
	IPv6CIDR  *netip.Prefix     `json:"ipv6CIDR"`
}

// Reservation is a CIDR reservation of a subnet.
type Reservation struct {
	Subnet string       `json:"subnet"`
	CIDR   netip.Prefix `json:"cidr"`
	Type   string       `json:"type" enum:"prefix,explicit"`
}

// InstanceType holds the limits of an instance type.
type InstanceType struct {
	InstanceType string `json:"instanceType"`
	Known        bool   `json:"known"`
	MaxENIs      *int   `json:"maxENIs"`
	IPv4PerENI   *int   `json:"ipv4PerENI"`
	Hypervisor   string `json:"hypervisor"`
	BareMetal    *bool  `json:"bareMetal"`
	Trunk        *bool  `json:"trunk"`
	BranchENIs   *int   `json:"branchENIs"`
}

// Instance is an instance as EC2 describes it.
type Instance struct {
	ID           string    `json:"id" key:"true"`
	InstanceType string    `json:"instanceType"`
	State        string    `json:"state"` // running, terminated, …
	StateAt      time.Time `json:"stateAt,omitzero"`
	HTTPEndpoint string    `json:"httpEndpoint" enum:"enabled,disabled"`
	HTTPTokens   string    `json:"httpTokens" enum:"optional,required"`
	HopLimit     *int      `json:"hopLimit"`
	Profile      string    `json:"profile,omitempty"` // ARN of the instance profile
	Cluster      string    `json:"cluster,omitempty"` // from its tags
}

// Quota is the account's quota of network interfaces in the region.
type Quota struct {
	Limit *int `json:"limit"`
	Used  *int `json:"used"`
}

// SecurityGroup is a group with its rules.
type SecurityGroup struct {
	ID      string      `json:"id" key:"true"`
	VPC     string      `json:"vpc"`
	Ingress []GroupRule `json:"ingress"`
	Egress  []GroupRule `json:"egress"`
}

// GroupRule allows traffic with a peer, which is a CIDR or a group.
type GroupRule struct {
	Protocol string `json:"protocol"`
	From     *int   `json:"from"` // port
	To       *int   `json:"to"`
	Peer     string `json:"peer"`
}

// RouteTable is the route table of a subnet.
type RouteTable struct {
	Subnet string     `json:"subnet" key:"true"`
	Routes []VPCRoute `json:"routes"`
}

// VPCRoute is a route of a VPC route table.
type VPCRoute struct {
	To     string `json:"to"`
	Target string `json:"target"`
}

// IAM is the result of simulating the role's policies.
type IAM struct {
	Role    string            `json:"role"`
	Actions map[string]string `json:"actions"` // from ec2:NAME to allowed or denied
}
