// Package egress is the egress-cni plugin, chained after aws-cni: pods of an
// IPv6 cluster reach IPv4 destinations, or pods of an IPv4 cluster IPv6 ones, by a second
// veth pair, an address from a range of the node's own (by the reference plugin
// host-local) and a translation to the node's address (by iptables).
//
// Invariants. The lease is made first and released last, so whoever finds no lease of a
// sandbox finds nothing else of it either. Chain and jump come and go in one transaction.
// An ADD that fails takes back all that it made. A DEL needs neither the namespace nor
// that egress is still switched on: it asks the directory of leases. The result of the
// plugins before goes on as the CNI library prints it, without our addresses.
//
// Where egress is off, which a user's template may have for every pod, ADD only hands the
// result on (passOn) and DEL finds no leases; the rest is on the CNI library and the
// standard library. Children are forked on threads in the host's namespace; only
// throw-away threads enter a pod's.
package egress
