package fakeaws

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// VPC is a virtual network.
type VPC struct {
	ID        string
	CIDRs     []netip.Prefix // IPv4; the first is the primary one
	IPv6CIDRs []netip.Prefix
}

// SubnetSpec describes a subnet to add.
type SubnetSpec struct {
	ID       string // default: counted
	VPCID    string
	AZ       string       // default: region + "a"
	CIDR     netip.Prefix // IPv4, /16 to /28; unset for an IPv6-only subnet, which has an IPv6CIDR
	IPv6CIDR netip.Prefix // optional, /64
	Tags     map[string]string
	// AssignIPv6 gives each ENI that is created without a request for IPv6 an address from the
	// IPv6 CIDR.
	AssignIPv6 bool
}

// Subnet is one subnet.
type Subnet struct {
	ID, VPCID, AZ string
	CIDR          netip.Prefix
	IPv6CIDR      netip.Prefix // zero if none
	Tags          map[string]string
	AssignIPv6    bool // to each new ENI
	Free          int  // IPv4 addresses that can still be assigned
}

// SecurityGroup is one security group.
type SecurityGroup struct {
	ID, VPCID, Name string
}

// InstanceSpec describes an instance to add.
type InstanceSpec struct {
	ID             string // default: counted
	Type           string // must be known, see Options.Types
	SubnetID       string
	PrivateIP      netip.Addr // default: lowest free
	SecurityGroups []string   // default: the VPC's default group
	Tags           map[string]string
	IPv6           bool   // give the primary ENI an IPv6 address
	Role           string // IAM role shown by IMDS, and instance profile; default "node-role"
}

// Instance is one instance; its network interfaces are in World.ENIs.
type Instance struct {
	ID, Type, SubnetID, VPCID, AZ string
	PrimaryENI                    string
	PrimaryMAC                    string
	PrimaryIP                     netip.Addr
	Tags                          map[string]string
	Role                          string
}

// ENISpec describes a network interface to create.
type ENISpec struct {
	SubnetID       string
	Description    string
	Type           string // "interface" (default), "trunk", "efa", "efa-only", "branch"
	SecurityGroups []string
	PrimaryIP      netip.Addr // default: lowest free
	SecondaryIPs   []netip.Addr
	IPs            int // secondary addresses to pick
	Prefixes       int // IPv4 /28s to pick
	CIDRs          []netip.Prefix
	IPv6s          int
	IPv6Prefixes   int
	Tags           map[string]string
	ConnTrack      ConnTrack
	ClientToken    string // the same token again returns the same ENI
}

// ConnTrack holds connection tracking timeouts; zero means not set.
type ConnTrack struct {
	TCPEstablished, UDPStream, UDP time.Duration
}

// ENI is one network interface.
type ENI struct {
	ID, MAC, SubnetID, VPCID, AZ string
	Type, Description            string
	Status                       string     // "available" or "in-use"
	PrimaryIP                    netip.Addr // zero for efa-only
	SecondaryIPs                 []netip.Addr
	Prefixes                     []netip.Prefix // IPv4 /28s
	IPv6s                        []netip.Addr
	IPv6Prefixes                 []netip.Prefix // /80s
	SecurityGroups               []string
	SourceDestCheck              bool
	ConnTrack                    ConnTrack
	Tags                         map[string]string
	Attachment                   Attachment // zero if not attached
}

// Attachment connects an ENI to an instance.
type Attachment struct {
	ID, InstanceID      string
	Card, Device        int
	Status              string // "attaching", "attached", "detaching"
	DeleteOnTermination bool
}

// Primary reports whether the ENI is its instance's primary one.
func (e ENI) Primary() bool {
	return e.Attachment.ID != "" && e.Attachment.Card == 0 && e.Attachment.Device == 0
}

// Attached reports whether the attachment is complete.
func (e ENI) Attached() bool { return e.Attachment.Status == statusAttached }

// CIDRs lists everything the ENI owns: its addresses as /32 or /128, then prefixes.
func (e ENI) CIDRs() []netip.Prefix {
	var out []netip.Prefix
	if e.PrimaryIP.IsValid() {
		out = append(out, single(e.PrimaryIP))
	}
	for _, a := range e.SecondaryIPs {
		out = append(out, single(a))
	}
	out = append(out, e.Prefixes...)
	for _, a := range e.IPv6s {
		out = append(out, single(a))
	}
	return append(out, e.IPv6Prefixes...)
}

// Owns reports whether the ENI owns an address, single or in a prefix.
func (e ENI) Owns(a netip.Addr) bool {
	return slices.ContainsFunc(e.CIDRs(), func(p netip.Prefix) bool { return p.Contains(a) })
}

// slots is how much of the type's addresses-per-interface limit the ENI uses in IPv4: a prefix
// counts as one address.
func (e *ENI) slots() int {
	n := len(e.SecondaryIPs) + len(e.Prefixes)
	if e.PrimaryIP.IsValid() {
		n++
	}
	return n
}

func (e *ENI) slots6() int { return len(e.IPv6s) + len(e.IPv6Prefixes) }

func (e *ENI) clone() ENI {
	c := *e
	c.SecondaryIPs = slices.Clone(e.SecondaryIPs)
	c.Prefixes = slices.Clone(e.Prefixes)
	c.IPv6s = slices.Clone(e.IPv6s)
	c.IPv6Prefixes = slices.Clone(e.IPv6Prefixes)
	c.SecurityGroups = slices.Clone(e.SecurityGroups)
	c.Tags = maps.Clone(e.Tags)
	return c
}

const (
	statusAttaching = "attaching"
	statusAttached  = "attached"
	statusDetaching = "detaching"
	statusAvailable = "available"
	statusInUse     = "in-use"
)

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
