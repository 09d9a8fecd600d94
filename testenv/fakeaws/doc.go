// Package fakeaws is Amazon EC2 and the instance metadata service (IMDSv2) as two
// HTTP servers over one World, close enough that the real aws-sdk-go-v2 cannot tell
// the difference for the calls that a node's daemon makes.
//
// A World holds VPCs, subnets, security groups, instances and network interfaces.
// It is changed by EC2 calls (EC2Handler) and by the Go methods that the calls are
// made of; both obey the same limits and answer with EC2's error codes. IMDSHandler
// shows each instance its own part of the world, late by Options.MetadataLag.
//
// Invariants (World.Check): an address has one owner; a subnet's free count is its
// size less reserved, owned and occupied addresses; no interface holds more
// addresses, and no instance or network card more interfaces, than the instance
// type allows; device indexes are unique per card.
//
// Everything is deterministic: ids and MACs are counted, the lowest free address is
// taken. Nothing is silently ignored: an unknown action, parameter, filter or
// metadata path is answered with an error that names it and is also recorded in
// World.Violations, which every test should find empty.
//
// Requests signed for EKS or IAM are answered too, as far as cnictl makes them.
//
// The package must not import the daemon: it is the other end of the wire.
package fakeaws
