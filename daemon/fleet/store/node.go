package store

import (
	"time"

	"cnictl/daemon/fleet/document"
)

// Node is the state of one node. It never changes.
type Node struct {
	document.NodeIPAM

	// Sums over the cards, valid if Known; nil if unknown for any card.
	Known    bool // Summary is present
	Assigned int
	Cooling  *int
	Free     int  // includes those in cooldown if Cooling is nil
	Held     int  // addresses of the pool
	Limit    *int // maximum number of addresses on the node
	Room     *int // addresses that it could still get and pods could use
	ENIs     *int
	ENILimit *int
	Prefixes *int

	Word     string             // the state in one or two words, as in STATUS
	Code     string             // the state in one word for programs
	Severity document.Severity  // of the worst problem; "" if none
	Problems []document.Problem // worst first

	Rates   *Rates // nil after the first sample
	History History

	Changed time.Time // when anything other than the sample time last changed

	capacity  *int       // see Capacity
	scale     *int       // see Scale
	life      *life      // the same from its first sample on, until it leaves
	counters  []counters // for the rates of the next sample
	places    []place    // where its ENIs are, as far as known
	addresses addresses  // that it holds, as far as known
	uses      []use      // of subnets
	derived   any        // see Store.Prepare
}

// Pooled reports whether the node's daemon reported a pool.
func (n *Node) Pooled() bool { return n.Known && len(n.Summary.Cards) > 0 }

// SubnetIDs returns the subnets that its ENIs are in or may be created in.
func (n *Node) SubnetIDs() []string {
	ids := make([]string, len(n.uses))
	for i, u := range n.uses {
		ids[i] = u.subnet.ID
	}
	return ids
}

// Derived returns what Store.Prepare derived of the node; nil if nothing.
func (n *Node) Derived() any { return n.derived }

// life distinguishes a node from a later one of the same name.
type life struct{ _ byte } // not empty: pointers to empty values may be equal

// Rates are per minute, over the last minute or since the previous sample if that is longer
// ago, within one run of the daemon; nil for what is not counted.
type Rates struct {
	Over     time.Duration
	ADDs     *float64
	Failed   *float64 // ADDs without an address
	DELs     *float64
	EC2      *float64 // calls
	EC2Error *float64 // calls that failed
}
