// Package egress is the wanted state of one pod's egress, in the address family that the
// cluster's pods lack: names, addresses, routes, sysctls, and the rules of the nat table in
// the form of iptables-save. It is pure. plugin/egress applies it; the daemon, which knows
// through Living what pods had, restores from it what they lose.
//
// Everything here that other programs can see matches upstream (chain names, comments,
// order and text of rules, addresses).
package egress
