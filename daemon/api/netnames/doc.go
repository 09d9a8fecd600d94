// Package netnames holds the names and numbers that the plugin, the daemon, the
// network policy agent and people on a node must agree on: host link names, route
// tables, rule priorities, packet marks, chain names and pod gateways.
//
// It is a leaf: arithmetic and constants, no state, no I/O. Every value is part of
// the compatible surface, so a change here breaks running nodes (pods made by an
// older plugin are deleted by a newer one and the reverse) and third parties such
// as Calico and the policy agent, which compute the same link names.
package netnames
