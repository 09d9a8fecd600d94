// Package ipam is the address book of one node: which ENIs are attached, which
// secondary IPs and prefixes they hold, and which sandbox owns which address.
//
// The book is a value machine. [Book.Apply] takes one [Event] and the current
// time and either applies it whole or returns an error and changes nothing. It
// has one owner (the loop in daemon/ipamd) and no lock; readers get an immutable
// [Snapshot]. The package never touches the network, the disk or the clock.
//
// # Which address a pod gets
//
// Best fit, so that prefixes and ENIs drain and can be given back to EC2
// (spec/ipamd.md §13.1 no. 9: upstream scatters pods over map order):
//
//  1. the usable ENI with the most assigned addresses; among equals one that can
//     never be detached (primary, trunk, EFA), then the one with the better CIDR,
//     then the lowest device, then the lowest id;
//  2. on it the CIDR with the most assigned addresses; among equals one with an
//     address never used before, then the one whose next address was unassigned
//     longest ago, then the lowest;
//  3. in it the lowest address never used, else the one unassigned longest ago. A
//     /80 prefers the latter, so that it keeps records of no more addresses than
//     were assigned or cooling at one time.
//
// An ENI is usable unless excluded, held or quarantined; a CIDR unless held or
// quarantined; an address unless assigned or cooling. Custom networking marks the primary ENI excluded.
//
// # Cost
//
// Every candidate is in a heap of its ENI, every ENI with candidates in a heap of
// its network card, and cooling addresses wait in order of time, so neither
// Assign nor Unassign ever walks the addresses. A /80 has 2^48 addresses: records
// exist only for those assigned now or before.
//
// # Quarantine
//
// What EC2 does not show any more is quarantined before it is removed. Pods keep
// their addresses there and can end; nothing is given to others, and it can be
// neither held nor, therefore, given back. It is no part of any count of the pool.
//
// # Invariants ([Book.Check])
//
// CIDRs do not overlap. An address has at most one owner and each interface of a
// sandbox at most one address. Nothing is assigned on a held ENI or in a held CIDR. The address of an
// unplaced assignment lies in no CIDR that is in use, so it cannot be given away.
package ipam
