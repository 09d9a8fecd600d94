package evidence

import (
	"fmt"
	"net/netip"
	"strconv"
)

// Link is a network interface of the host.
type Link struct {
	Name   string `json:"name,omitempty" key:"true"`
	Pod    Pod    `json:"pod,omitempty" key:"true"` // in place of the name: the host end of its veth pair
	Kind   string `json:"kind"`                     // device, veth, vlan, …
	ENI    string `json:"eni,omitempty"`            // whose MAC it has
	MAC    string `json:"mac,omitempty"`
	MTU    *int   `json:"mtu,omitempty"` // bytes
	Up     *bool  `json:"up,omitempty"`
	VLAN   *int   `json:"vlan,omitempty"`
	Parent string `json:"parent,omitempty"`
}

// Rule is a policy rule.
type Rule struct {
	Family   int          `json:"family" default:"4"`
	Priority int          `json:"priority"`
	From     netip.Prefix `json:"from,omitzero"` // zero: all
	To       netip.Prefix `json:"to,omitzero"`   // zero: all
	IIF      string       `json:"iif,omitempty"`
	FWMark   string       `json:"fwmark,omitempty"` // 0x80/0x80
	Table    Table        `json:"table"`
}

// Table is a routing table: a number, or main, local, default.
type Table string

// FromText accepts a number or a name.
func (t *Table) FromText(text string) error {
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
	To     string     `json:"to"` // CIDR or default
	Via    netip.Addr `json:"via,omitzero"`
	Dev    string     `json:"dev,omitempty"`
	Pod    Pod        `json:"pod,omitempty"` // in place of dev: the host end of its veth pair
}

// IPTables is the content of both iptables back ends and of nftables.
type IPTables struct {
	Mode           string      `json:"mode" enum:"nft,legacy"` // of the host's iptables
	Legacy         Backend     `json:"legacy"`
	NFT            Backend     `json:"nft"`
	NFTTables      []string    `json:"nftTables"` // native: "ip aws-cni"
	Forward        string      `json:"forward"`   // policy of the filter FORWARD chain
	ForwardAccepts *bool       `json:"forwardAccepts"`
	SNATTo         *netip.Addr `json:"snatTo"` // of the rule in the last AWS-SNAT-CHAIN; nil: there is none
}

// Backend is one back end's chains ("nat AWS-SNAT-CHAIN-0") and rules. Each rule is a line of
// iptables-save preceded by its table.
type Backend struct {
	Chains []string `json:"chains"`
	Rules  []string `json:"rules"`
}

// Neighbour is an entry in a pod's neighbour table.
type Neighbour struct {
	Pod     Pod        `json:"pod" key:"true"`
	Address netip.Addr `json:"address"`
	MAC     string     `json:"mac"`
	State   string     `json:"state"` // permanent, …
}

// Conntrack is the usage of the conntrack table and of the instance's network allowances.
type Conntrack struct {
	Count     *int      `json:"count"`
	Max       *int      `json:"max"`
	Allowance Allowance `json:"allowance"`
}

// Allowance counts, since boot, packets beyond what the instance type allows
// (ethtool's …_allowance_exceeded).
type Allowance struct {
	Conntrack *int `json:"conntrack"`
	LinkLocal *int `json:"linklocal"`
	PPS       *int `json:"pps"`
	BWIn      *int `json:"bwIn"`
	BWOut     *int `json:"bwOut"`
}
