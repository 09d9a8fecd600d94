package resync

import (
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/ipam"
)

// ENI is a network interface as EC2 describes it.
type ENI struct {
	ID            ipam.ENIID
	MAC           string // lower-case colon form
	Status        string // "available", "in-use", "pending", …
	InterfaceType string // "interface", "trunk", "efa", "efa-only", "branch", …
	Description   string
	SubnetID      string

	AttachmentID        string // "" while not attached
	AttachmentStatus    string // "attaching", "attached", "detaching", ""
	InstanceID          string // "" while not attached
	Card, Device        int
	DeleteOnTermination bool

	PrimaryIP       netip.Addr // zero if it has none (efa-only)
	SecondaryIPs    []netip.Addr
	Prefixes        []netip.Prefix // /28
	IPv6s           []netip.Addr   // in no order
	PrimaryIPv6     netip.Addr     // the one of them that is marked as primary; zero if none is
	IPv6Prefixes    []netip.Prefix // /80
	SecurityGroups  []string
	SourceDestCheck bool
	ConnTrack       ConnTrack
	Tags            map[string]string
}

// ConnTrack holds the connection tracking timeouts that are set; zero means EC2's default.
type ConnTrack struct {
	TCPEstablished, UDPStream, UDP time.Duration
}

// Statuses of an ENI that decisions depend on.
const (
	StatusAvailable     = "available" // not attached
	AttachmentAttached  = "attached"
	AttachmentDetaching = "detaching"
)

// Attached reports whether the ENI occupies a slot of an instance; this includes attaching and
// detaching. The instance metadata does not show attachment IDs.
func (e ENI) Attached() bool { return e.AttachmentID != "" || e.AttachmentStatus != "" }

// Trunk reports whether the ENI carries branch ENIs.
func (e ENI) Trunk() bool { return e.InterfaceType == string(TypeTrunk) }

// EFA reports whether the ENI is an elastic fabric adapter with addresses.
func (e ENI) EFA() bool { return e.InterfaceType == string(TypeEFA) }

// EFAOnly reports whether the ENI is an elastic fabric adapter without addresses.
func (e ENI) EFAOnly() bool { return e.InterfaceType == string(TypeEFAOnly) }

// PrimaryOf returns the ENI's own address of a family; zero if it has none. If no IPv6 address
// is marked as primary it is the smallest one, since they are listed in any order.
func (e ENI) PrimaryOf(ipv6 bool) netip.Addr {
	switch {
	case !ipv6:
		return e.PrimaryIP
	case e.PrimaryIPv6.IsValid() || len(e.IPv6s) == 0:
		return e.PrimaryIPv6
	}
	return slices.MinFunc(e.IPv6s, netip.Addr.Compare)
}

// CIDRsOf lists what pods of a family can use: for IPv6 only the /80s.
func (e ENI) CIDRsOf(ipv6 bool) []netip.Prefix {
	if ipv6 {
		return slices.Clone(e.IPv6Prefixes)
	}
	return e.CIDRs()
}

// CIDRs lists what IPv4 pods can use: secondary addresses as /32, then prefixes.
func (e ENI) CIDRs() []netip.Prefix {
	out := make([]netip.Prefix, 0, len(e.SecondaryIPs)+len(e.Prefixes))
	return appendCIDRs(out, e.SecondaryIPs, e.Prefixes)
}

func appendCIDRs(out []netip.Prefix, ips []netip.Addr, prefixes []netip.Prefix) []netip.Prefix {
	for _, a := range ips {
		out = append(out, netip.PrefixFrom(a, a.BitLen()))
	}
	return append(out, prefixes...)
}

// Interface is a network interface as the instance metadata shows it.
type Interface struct {
	MAC            string // lower-case colon form
	ENI            ipam.ENIID
	Device         int // device number
	Card           int // network card; 0 if the service does not report it
	SubnetID       string
	SubnetCIDR     netip.Prefix   // IPv4; zero if none
	SubnetIPv6CIDR netip.Prefix   // zero if none; read only with Config.IPv6
	IPv4s          []netip.Addr   // the first is the primary one; empty for efa-only
	Prefixes       []netip.Prefix // /28
	IPv6s          []netip.Addr
	IPv6Prefixes   []netip.Prefix // /80; read only with Config.IPv6
	SecurityGroups []string

	// Unread names the lists that could not be read. They are unknown, not empty.
	Unread Parts
}

// Parts is a set of lists of an [Interface].
type Parts uint8

// The lists that reconcile compares.
const (
	PartIPv4s Parts = 1 << iota
	PartPrefixes
	PartIPv6Prefixes
)

// CIDRsOf lists what pods of a family can use, like [ENI.CIDRsOf].
func (f Interface) CIDRsOf(ipv6 bool) []netip.Prefix {
	if ipv6 {
		return slices.Clone(f.IPv6Prefixes)
	}
	return f.CIDRs()
}

// CIDRs lists what IPv4 pods can use, like [ENI.CIDRs].
func (f Interface) CIDRs() []netip.Prefix {
	ips := f.IPv4s
	if len(ips) > 0 {
		ips = ips[1:]
	}
	return appendCIDRs(make([]netip.Prefix, 0, len(ips)+len(f.Prefixes)), ips, f.Prefixes)
}
