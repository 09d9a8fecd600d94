// Package egress is the egress-cni plugin, chained after aws-cni: pods of an
// IPv6 cluster reach IPv4 destinations, or pods of an IPv4 cluster IPv6 ones, by a second
// veth pair, an address from a range of the node's own (by the reference plugin
// host-local) and a translation to the node's address (by iptables).
//
// Invariants. The lease is made first and released last, so a sandbox without a lease has
// nothing else either. Chain and jump come and go in one transaction. An ADD that fails
// undoes everything. A DEL needs neither the namespace nor egress to be still on: it
// reads the directory of leases. The previous result is passed on as the CNI library
// prints it, without our addresses.
//
// With egress off, which a user's template may have for every pod, ADD only passes the
// result on (passOn) and DEL finds no leases; the rest is on the CNI library and the
// standard library. Children are forked on threads in the host's namespace; only
// throw-away threads enter a pod's.
package egress
