package rules

import "fmt"

// commentGuard marks the rule that keeps pods of an IPv6 cluster apart: their IPv4
// addresses are the node's own affair, for traffic that leaves it.
const commentGuard = "Block Node Local Pod access via IPv4"

// egressRange holds the IPv4 addresses of pods in IPv6 clusters, the same on every
// node.
const egressRange = "169.254.172.0/22"

// guardTable rejects connections to the egress addresses of pods. An IPv4 node does
// not want it and does not remove it either: pods with such an address may outlive
// the change of the cluster's family.
func guardTable() Table {
	spec := fmt.Sprintf(`-d %s -m conntrack --ctstate NEW -m comment --comment "%s" -j REJECT --reject-with icmp-port-unreachable`, egressRange, commentGuard)
	return Table{Name: "filter", Chains: []Chain{{Name: "FORWARD", Policy: "ACCEPT", Rules: []string{spec}}}}
}

// ruleset6 is what iptables should hold on the node of an IPv6 cluster: the guard, and
// nothing of the SNAT and marks of an IPv4 cluster.
func ruleset6() Ruleset {
	return Ruleset{Tables: []Table{
		guardTable(),
		{Name: "mangle", Chains: []Chain{{Name: "PREROUTING", Policy: "ACCEPT"}}},
		{Name: "nat", Chains: []Chain{{Name: "PREROUTING", Policy: "ACCEPT"}, {Name: "POSTROUTING", Policy: "ACCEPT"}}},
	}}
}
