package store

import "time"

// View is the fleet at one moment. It never changes.
type View struct {
	Generation uint64    // grows with every change
	At         time.Time // of the newest sample
	Nodes      []*Node   // by name, as query.Natural orders
	Totals     Totals
	Subnets    []SubnetUse // by id
}

// Least is a sum over the nodes that report its terms.
type Least struct {
	N     int
	Known bool // else no node reports it, and N means nothing
	Bound bool // some node does not report it: N is a lower bound
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
	Cooling  Least
	Free     int
	Held     int
	Limit    *int // null while the limit of a node is not known
	Pods     *int // max-pods of all nodes
	Waiting  int  // ADDs that wait for an address

	ENIs     Least
	ENILimit *int
	Trunks   int
	Branches int
	BranchOf int // limit of those that have a trunk

	Errors   int // nodes with a problem of severity error
	Warnings int

	Complete bool // no node is missing from the sums; else they are lower bounds
}

// Node returns a node by name, nil when there is none.
func (v *View) Node(name string) *Node {
	if i, found := find(v.Nodes, name); found {
		return v.Nodes[i]
	}
	return nil
}
