// Package ipam is the address book of one node: which ENIs are attached, which
// secondary IPs and prefixes they hold, and which sandbox owns which address.
//
// The book is a state machine. [Book.Apply] takes one [Event] and the current time and
// either applies the event completely or returns an error and changes nothing. It has one
// owner (the loop in daemon/ipamd) and no lock; readers get an immutable [Snapshot]. The
// package never uses the network, the disk or the clock.
//
// # Which address a pod gets
//
// Best fit, so that prefixes and ENIs drain and can be released to EC2 (upstream scatters
// pods in map order: docs/compatibility.md, 13.1-9):
//
//  1. the usable ENI with the most assigned addresses; among equals one that can
//     never be detached (primary, trunk, EFA), then the one with the better CIDR,
//     then the lowest device, then the lowest ID;
//  2. on it the CIDR with the most assigned addresses; among equals the lowest
//     whose next address was never used or has been unassigned for ten minutes, so
//     that the highest secondary IPs stay free and are the ones released, on every
//     node (docs/decisions/029-free-blocks.md); else the one whose next address was
//     unassigned longest ago;
//  3. in it the lowest address never used, else the one unassigned longest ago. A
//     /80 prefers the latter, so that it keeps no more records than addresses were
//     assigned or in cooldown at one time.
//
// An ENI is usable unless excluded, held or quarantined; a CIDR unless held or quarantined;
// an address unless assigned or in cooldown. Custom networking marks the primary ENI excluded.
//
// # Cost
//
// Every candidate is in a heap of its ENI, every ENI with candidates is in a heap of its
// network card, and addresses in cooldown are queued by time, so neither Assign nor Unassign
// ever walks the addresses. A /80 has 2^48 addresses: records exist only for those assigned
// now or before.
//
// # Connection tracking
//
// The kernel's connection tracking keeps an address's entries for longer than its cooldown
// lasts, so a packet of an old connection to a Service would reach the address's next pod.
// With [Options].Passes, an address is in cooldown until its entries have been deleted that
// often: at once, and again shortly before the cooldown ends, for what clients that resent a
// packet in between created again. [Book.FlowsDue] lists the addresses whose pass is due.
//
// # Quarantine
//
// Whatever EC2 no longer shows is quarantined before it is removed. Its pods keep their
// addresses and can end; no address is given to new pods, and it can be neither held nor,
// therefore, released. It is not part of any count of the pool.
//
// # Invariants ([Book.Check])
//
// CIDRs do not overlap. An address has at most one owner, and each interface of a sandbox has
// at most one address. Nothing is assigned on a held ENI or in a held CIDR. The address of an
// unplaced assignment is in no CIDR in use, so it cannot be given to another sandbox.
package ipam
