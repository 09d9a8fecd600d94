package ipam

import "errors"

// Errors that callers check for; Apply returns them wrapped with their object.
var (
	// ErrNoAddress: no address of the requested card, kind and family is free now.
	ErrNoAddress = errors.New("no free address")
	// ErrUnknownENI: the book has no ENI with that ID.
	ErrUnknownENI = errors.New("unknown ENI")
	// ErrUnknownCIDR: the ENI has no such secondary IP or prefix.
	ErrUnknownCIDR = errors.New("unknown secondary IP or prefix")
	// ErrUnknownSandbox: the sandbox owns no address.
	ErrUnknownSandbox = errors.New("unknown sandbox")
	// ErrENIInUse: pods have addresses of the ENI.
	ErrENIInUse = errors.New("ENI has assigned addresses")
	// ErrCIDRInUse: pods have addresses of the secondary IP or prefix.
	ErrCIDRInUse = errors.New("secondary IP or prefix has assigned addresses")
	// ErrQuarantined: EC2 no longer shows the ENI, secondary IP or prefix, so it cannot be
	// released.
	ErrQuarantined = errors.New("is quarantined")
	// ErrAddressTaken: another sandbox owns the address.
	ErrAddressTaken = errors.New("address belongs to another sandbox")
	// ErrDuplicate: the ENI is already in the book, a CIDR overlaps another one, or
	// the sandbox already owns another address.
	ErrDuplicate = errors.New("already in the book")
	// ErrInvalid: the event itself is invalid, whatever the book holds.
	ErrInvalid = errors.New("invalid event")
)
