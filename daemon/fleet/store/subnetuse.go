package store

import (
	"net/netip"

	"cnictl/daemon/api/introspect"
)

// SubnetUse is a subnet as the fleet sees it.
type SubnetUse struct {
	introspect.Subnet
	Range  netip.Prefix // Subnet.CIDR parsed; zero: not known
	Zone   string       // of the nodes in it, "" = not known
	Nodes  int          // that have an ENI there or may make one
	ENIs   int
	Held   int // addresses of pools there, and a primary address for each ENI
	Wasted int // of Held, free ones
	// Blocks are the /28s of Range that are known of, by address; see [Block].
	Blocks []Block
}

// BlockUse describes one /28.
type BlockUse uint8

// An unknown /28 has no Block: it may be free or another's.
const (
	BlockPrefix  BlockUse = iota + 1 // a prefix of ours
	BlockMixed                       // single addresses of ours: no prefix can be had there
	BlockPrimary                     // primary addresses of ENIs of ours alone
)

// Block is one /28 of a subnet.
type Block struct {
	Prefix netip.Prefix
	Use    BlockUse
	Held   int // addresses of ours in it
	Used   int // of them assigned to pods
	Node   string
}
