// Package egress is the egress-cni plugin, chained after aws-cni. It lets pods of an IPv6
// cluster reach IPv4 destinations, or pods of an IPv4 cluster IPv6 ones, through a second
// veth pair, an address from a node-local range (assigned by the reference plugin
// host-local) and translation to the node's address (by iptables).
//
// Invariants. The lease is taken first and released last, so a sandbox without a lease has
// nothing else either. Chain and jump are added and removed in one transaction. An ADD
// that fails undoes everything. A DEL requires neither the namespace nor that egress is
// still enabled: it reads the lease directory. The previous result is passed on as the CNI
// library prints it, without our addresses.
//
// With egress off, which a user's template may configure for every pod, ADD only passes
// the result on (passOn) and DEL finds no leases; everything else uses the CNI library and
// the standard library. Children are forked on threads in the host's namespace; only
// throw-away threads enter a pod's.
package egress
