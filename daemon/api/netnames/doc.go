// Package netnames holds the names and numbers that the plugin, the daemon, the network
// policy agent and people on a node must agree on: host link names, route tables, rule
// priorities, packet marks, chain names and pod gateways.
//
// It is a leaf package: arithmetic and constants, no state, no I/O. Every value is part of
// the compatible surface. A change here breaks running nodes, where one release of the
// plugin deletes pods that another created, and third parties such as Calico and the policy
// agent, which compute the same link names.
package netnames
