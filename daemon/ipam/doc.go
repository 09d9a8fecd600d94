// Package ipam is the address book of one node: which ENIs are attached, which
// secondary IPs and prefixes they hold, and which sandbox owns which address.
//
// The book is a value machine. [Book.Apply] takes one [Event] and the current
// time and either applies it whole or returns an error and changes nothing. It
// has one owner (the loop in daemon/ipamd) and no lock; readers get an immutable
// [Snapshot]. The package decides which address a pod gets (best fit: the
// fullest CIDR on the fullest ENI, so that prefixes and ENIs drain) and never
// touches the network, the disk or the clock.
package ipam
