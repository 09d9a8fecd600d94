package warmpool

import "time"

// obstacleKind says what keeps a pool from growing.
type obstacleKind uint8

const (
	atMaxPods  obstacleKind = iota + 1
	atMaxENIs               // every slot of the card is taken, spoken for or reserved
	attachLate              // Snapshot.AttachBackoff
	eniLate                 // Snapshot.ENIBackoff
	exhausted               // a subnet
	fragmented              // a subnet
	noSubnet
)

// obstacle is one thing in the way of growth.
type obstacle struct {
	kind    obstacleKind
	subject string    // the subnet or ENI
	until   time.Time // zero: no known end
}

// reason is the reason to wait for the end of an obstacle that has one.
func (o obstacle) reason() Reason {
	switch o.kind {
	case attachLate:
		return AttachBackedOff
	case eniLate:
		return ENIBackedOff
	case fragmented:
		return SubnetFragmented
	}
	return SubnetExhausted
}
