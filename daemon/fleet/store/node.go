package store

import (
	"time"

	"cnictl/daemon/fleet/document"
)

// Node is the state of one node. It never changes.
type Node struct {
	document.NodeIPAM

	// Sums over the cards, valid while Known. Null: not known of every card.
	Known    bool // Summary is there
	Assigned int
	Cooling  *int
	Free     int  // those that rest among them while Cooling is null
	Held     int  // addresses of the pool: Assigned + Cooling + Free
	Limit    *int // addresses that the node can hold
	ENIs     *int
	ENILimit *int
	Prefixes *int

	Word     string             // the state in a word or two, as STATUS shows it
	Code     string             // the state in one word for programs
	Severity document.Severity  // of the worst problem; "" without any
	Problems []document.Problem // worst first

	Rates   *Rates // null with the first sample
	History History

	Changed time.Time // when anything but the time of the sample was another

	counters  []counters // for the rates of the next sample
	places    []place    // where its ENIs are, as far as it is known
	addresses addresses  // that it holds, likewise
	uses      []use      // of subnets
	cells     *nodeCells // texts of NodeColumns; nil of a node that was not made here
}

// Rates are per minute, over the last minute or since the sample before where that is longer
// ago, of one run of the daemon; null of what is not counted.
type Rates struct {
	Over     time.Duration
	ADDs     *float64
	Failed   *float64 // ADDs without an address
	DELs     *float64
	EC2      *float64 // calls
	EC2Error *float64 // calls that failed
}
