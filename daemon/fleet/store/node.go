package store

import (
	"time"

	"cnictl/daemon/api/introspect"
)

// Node is what is known of one node. It never changes.
type Node struct {
	introspect.NodeIPAM

	// Sums over the cards; they mean something while Known.
	Known    bool // Summary is there
	Assigned int
	Cooling  int
	Free     int
	Held     int  // addresses of the pool: Assigned + Cooling + Free
	Limit    *int // addresses that the node can hold
	ENIs     int
	ENILimit *int

	Word     string               // the state in a word or two, as STATUS shows it
	Severity introspect.Severity  // of the worst problem; "" without any
	Problems []introspect.Problem // worst first

	Rates   *Rates // since the sample before; null with the first
	History History

	Changed time.Time // when anything but the time of the sample was another

	counters *counters  // for the rates of the next sample
	places   []place    // where its ENIs are, as far as it is known
	uses     []use      // of subnets
	cells    *nodeCells // texts of NodeColumns; nil of a node that was not made here
}

// Rates are per minute between the last two samples of one run of the daemon.
type Rates struct {
	Over     time.Duration // between the two
	ADDs     float64
	Failed   float64 // ADDs without an address
	DELs     float64
	EC2      float64 // calls
	EC2Error float64 // calls that failed
}

// HistoryLen is how many points a History holds at most.
const HistoryLen = 90

// Point is one moment of a node.
type Point struct {
	At       time.Time
	Assigned int32
	Cooling  int32
	Free     int32
	ENIs     int32
	Waiting  int32 // ADDs that wait; -1: not known
}

// History is the last points, oldest first. A moment in which the node could not be read
// is a point with Assigned -1: a gap, not a zero.
type History []Point

// Gap tells that nothing is known of the moment.
func (p Point) Gap() bool { return p.Assigned < 0 }
