package warmpool

import "time"

// obstacleKind is a reason why a pool cannot grow.
type obstacleKind uint8

const (
	atMaxPods  obstacleKind = iota + 1
	atMaxENIs               // every slot of the card is taken, planned for or reserved
	attachLate              // Snapshot.AttachBackoff
	eniLate                 // Snapshot.ENIBackoff
	exhausted               // a subnet
	fragmented              // a subnet
	noSubnet
	statedENIs  // EC2 refused another ENI; the type takes more
	statedSlots // EC2 refused another secondary IP or prefix on an ENI; the type takes more
)

// obstacle is one thing that prevents growth.
type obstacle struct {
	kind    obstacleKind
	subject string    // the subnet or ENI
	until   time.Time // zero if it has no known end
}

// reason is the reason to wait for the end of an obstacle, if it has an end.
func (o obstacle) reason() Reason {
	switch o.kind {
	case attachLate:
		return AttachBackedOff
	case eniLate:
		return ENIBackedOff
	case fragmented:
		return SubnetFragmented
	case statedENIs:
		return ENILimitStated
	case statedSlots:
		return AddressLimitStated
	}
	return SubnetExhausted
}
