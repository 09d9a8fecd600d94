// Package egress is the wanted state of one pod's egress, for the family that the
// cluster's pods have no addresses of: names, addresses, routes, sysctls, and the rules
// of the nat table in the form of iptables-save. It is pure. plugin/egress applies it;
// the daemon, which knows by Living what pods had, brings back from it what they lose.
//
// Everything here that other programs can see is as upstream's (chain names,
// comments, order and text of rules, addresses).
package egress
