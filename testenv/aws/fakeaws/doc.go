// Package fakeaws simulates Amazon EC2 and the instance metadata service (IMDSv2) with two
// HTTP servers over one World, close enough that the real aws-sdk-go-v2 cannot tell
// the difference in the calls that a node's daemon makes.
//
// A World holds VPCs, subnets, security groups, instances and network interfaces.
// EC2 calls (EC2Handler) and the Go methods that implement them change it; both obey
// the same limits and return EC2's error codes. IMDSHandler shows each instance its
// own part of the world, delayed by Options.MetadataLag.
//
// Invariants (World.Check): an address has one owner; a subnet's free count is its
// size less reserved, owned and occupied addresses; no interface holds more
// addresses, and no instance or network card more interfaces, than the instance
// type allows; device indexes are unique per card.
//
// Everything is deterministic: ids and MACs are counted, and the lowest free address
// is taken. Nothing is silently ignored: an unknown action, parameter, filter or
// metadata path gets an error that names it and is also recorded in
// World.Violations, which every test should find empty.
//
// Requests signed for EKS or IAM are answered too, as far as cnictl sends them.
//
// The package must not import the daemon: it is the other end of the wire.
package fakeaws
