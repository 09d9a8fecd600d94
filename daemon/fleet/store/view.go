package store

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
)

// View is the whole fleet at one moment. It never changes.
type View struct {
	Generation uint64    // grows with every change
	At         time.Time // of the newest sample
	Nodes      []*Node   // by name
	Totals     Totals
	Subnets    []SubnetUse // by id
}

// Totals sum the fleet up.
type Totals struct {
	Nodes    int
	Live     int // answered
	Partial  int // answered in part, or an older sample is shown
	Down     int // could not be read, or runs no daemon although it should
	Unasked  int // not yet asked
	NoDaemon int // runs no daemon and need not (Fargate, Windows)

	Assigned int
	Cooling  int
	Free     int
	Held     int
	Limit    *int // null while the limit of a node is not known
	Pods     *int // max-pods of all nodes
	Waiting  int  // ADDs that wait for an address

	ENIs     int
	ENILimit *int
	Trunks   int
	Branches int
	BranchOf int // limit of those that have a trunk

	Errors   int // nodes with a problem of severity error
	Warnings int

	Complete bool // no node is missing from the sums; else they are lower bounds
}

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

// BlockUse says what is known of one /28.
type BlockUse uint8

// A /28 of which nothing is known has no Block: it may be free or another's.
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

// Node returns a node by name, nil when there is none.
func (v *View) Node(name string) *Node {
	lo, hi := 0, len(v.Nodes)
	for lo < hi {
		mid := (lo + hi) / 2
		if v.Nodes[mid].Metadata.Name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(v.Nodes) && v.Nodes[lo].Metadata.Name == name {
		return v.Nodes[lo]
	}
	return nil
}
