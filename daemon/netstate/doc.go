// Package netstate is the single model of a node's network: links, addresses, neighbours,
// routes, policy rules and settings, as the kernel lists them and as they are wanted. The
// builders (daemon/hostnet/rules, daemon/hostnet/egress, plugin/podnet/rules) make such
// values, daemon/rtnl reads and writes them. [DiffRules] and the builders' Diff functions
// compute the [Change]s from the current to the wanted state; these are applied, or
// reported by their String.
//
// Two values are the same object in the same state if they are ==. So the builders fill in
// what the kernel lists: main is a table's number, not 0, the default route has the range
// of all addresses, and a rule has its family. Only values for deletion leave members zero,
// meaning any.
//
// The package is pure, and the plugin, which starts once per pod, links it: no fmt here.
package netstate
