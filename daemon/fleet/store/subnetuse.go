package store

import (
	"net/netip"

	"cnictl/daemon/api/introspect"
)

// SubnetUse is a subnet as the fleet sees it.
type SubnetUse struct {
	introspect.Subnet
	Node   string       // whose report this is; "" if nodes only have ENIs there
	Range  netip.Prefix // Subnet.CIDR parsed; zero = unknown
	Zone   string       // of the nodes in it; "" = unknown
	Nodes  int          // that have an ENI there or may create one
	ENIs   int
	Held   int // addresses of pools there, plus one primary address per ENI
	Wasted int // free addresses among Held
	// Readings are EC2's counts up to now, except the newest.
	Readings Readings
	// Blocks are the known /28s of Range, by address; see [Block].
	Blocks []Block
}

// BlockUse describes one /28.
type BlockUse uint8

// A /28 without a Block is unknown: free, or used by others.
const (
	BlockPrefix  BlockUse = iota + 1 // a prefix of ours
	BlockMixed                       // single addresses of ours: it cannot become a prefix
	BlockPrimary                     // only primary addresses of our ENIs
)

// Block is one /28 of a subnet.
type Block struct {
	Prefix netip.Prefix
	Use    BlockUse
	Held   int // our addresses in it
	Used   int // of Held, those assigned to pods
	Node   string
}
