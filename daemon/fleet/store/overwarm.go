package store

import (
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// WordOverWarm is the word for a node that is well but for holding far more free
// addresses than its pods can be expected to take: others of the subnet cannot have them.
const WordOverWarm = "over-warm"

// OverWarm reports such a pool: more than two thirds of it is free, and more than any one
// ENI or prefix of an ordinary instance type brings. The addresses of an IPv6
// prefix are never scarce.
func (n *Node) OverWarm() bool {
	const many = 30
	return n.Known && n.Summary.IPFamily != "ipv6" && n.Free > many && n.Free > 2*n.Assigned
}

// wasteful reports that nothing else is to be said of a node than that it is OverWarm.
func (n *Node) wasteful() bool {
	return n.State == document.StateLive && n.Word == fleet.CodeOK && n.OverWarm()
}
