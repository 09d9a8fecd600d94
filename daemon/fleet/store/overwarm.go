package store

import (
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// WordOverWarm marks a node that is fine except that it holds far more free addresses than its
// pods are likely to need: other nodes of the subnet cannot have them.
const WordOverWarm = "over-warm"

// OverWarm reports a pool that is more than two thirds free, with more free addresses than any one
// ENI or prefix of an ordinary instance type provides. IPv6 addresses are never scarce.
func (n *Node) OverWarm() bool {
	const many = 30
	return n.Known && n.Summary.IPFamily != "ipv6" && n.Free > many && n.Free > 2*n.Assigned
}

// wasteful reports that being OverWarm is the only thing wrong with a node.
func (n *Node) wasteful() bool {
	return n.State == document.StateLive && n.Word == fleet.CodeOK && n.OverWarm()
}
