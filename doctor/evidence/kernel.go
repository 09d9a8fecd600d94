package evidence

import (
	"fmt"
	"net/netip"
	"strconv"
)

// Link is a network interface of the host.
type Link struct {
	Name   string `json:"name,omitempty" key:"true"`
	Pod    Pod    `json:"pod,omitempty" key:"true"` // instead of the name: the host end of the veth pair of this pod
	Kind   string `json:"kind,omitzero"`            // device, veth, vlan, …
	ENI    string `json:"eni,omitempty"`            // ENI with the same MAC
	MAC    string `json:"mac,omitempty"`
	MTU    *int   `json:"mtu,omitempty"` // bytes
	Up     *bool  `json:"up,omitempty"`
	VLAN   *int   `json:"vlan,omitempty"`
	Parent string `json:"parent,omitempty"`

	Addresses []netip.Prefix `json:"addresses,omitempty"` // IPv4, without loopback and link-local ones; if no link has any, they were not read
}

// Rule is a policy rule.
type Rule struct {
	Family   int          `json:"family" default:"4"`
	Priority int          `json:"priority,omitzero"`
	From     netip.Prefix `json:"from,omitzero"` // zero means all
	To       netip.Prefix `json:"to,omitzero"`   // zero means all
	IIF      string       `json:"iif,omitempty"`
	FWMark   string       `json:"fwmark,omitempty"` // such as 0x80/0x80
	Table    Table        `json:"table,omitzero"`
}

// Table is a routing table: a number, or main, local, default.
type Table string

// UnmarshalText accepts a number or a name.
func (t *Table) UnmarshalText(data []byte) error {
	text := string(data)
	if _, err := strconv.ParseUint(text, 10, 32); err != nil && text != "main" && text != "local" && text != "default" {
		return fmt.Errorf("want a number, main, local or default, not %q", text)
	}
	*t = Table(text)
	return nil
}

// Route is a route of any table.
type Route struct {
	Family int        `json:"family" default:"4"`
	Table  int        `json:"table" default:"254"`
	To     string     `json:"to,omitzero"` // CIDR or default
	Via    netip.Addr `json:"via,omitzero"`
	Dev    string     `json:"dev,omitempty"`
	Pod    Pod        `json:"pod,omitempty"` // instead of dev: the host end of the veth pair of this pod
}

// IPTables is the state of both iptables backends and of nftables.
type IPTables struct {
	Mode           string      `json:"mode,omitzero" enum:"nft,legacy"` // backend of the host's iptables
	Legacy         Backend     `json:"legacy,omitzero"`
	NFT            Backend     `json:"nft,omitzero"`
	NFTTables      []string    `json:"nftTables,omitzero"` // native tables, such as "ip aws-cni"
	Forward        string      `json:"forward,omitzero"`   // policy of the filter FORWARD chain
	ForwardAccepts *bool       `json:"forwardAccepts,omitzero"`
	SNATTo         *netip.Addr `json:"snatTo,omitzero"` // from the rule in the last AWS-SNAT-CHAIN; nil if none
}

// Backend holds one backend's chains ("nat AWS-SNAT-CHAIN-0") and rules. A rule is a line of
// iptables-save, preceded by its table.
type Backend struct {
	Chains []string `json:"chains,omitzero"`
	Rules  []string `json:"rules,omitzero"`
}

// Neighbour is an entry of the neighbour table inside a pod.
type Neighbour struct {
	Pod     Pod        `json:"pod,omitzero" key:"true"`
	Address netip.Addr `json:"address,omitzero"`
	MAC     string     `json:"mac,omitzero"`
	State   string     `json:"state,omitzero"` // permanent, …
}

// Conntrack is the fill level of the conntrack table, with the instance's network allowances.
type Conntrack struct {
	Count     *int      `json:"count,omitzero"`
	Max       *int      `json:"max,omitzero"`
	Allowance Allowance `json:"allowance,omitzero"`

	Neighbours NeighbourTables `json:"neighbours,omitzero"`
}

// NeighbourTables are those of ARP and NDP, which all network namespaces share.
type NeighbourTables struct {
	IPv4 NeighbourTable `json:"ipv4,omitzero"`
	IPv6 NeighbourTable `json:"ipv6,omitzero"`
}

// NeighbourTable is the fill level of such a table. Permanent entries count, but not against its maximum.
type NeighbourTable struct {
	Entries *int `json:"entries,omitzero"`
	Max     *int `json:"max,omitzero"`  // gc_thresh3
	Full    *int `json:"full,omitzero"` // how often there was no room for an entry, since boot
}

// Allowance counts, since boot, packets beyond what the instance type allows
// (ethtool's …_allowance_exceeded).
type Allowance struct {
	Conntrack *int `json:"conntrack,omitzero"`
	LinkLocal *int `json:"linklocal,omitzero"`
	PPS       *int `json:"pps,omitzero"`
	BWIn      *int `json:"bwIn,omitzero"`
	BWOut     *int `json:"bwOut,omitzero"`
}
