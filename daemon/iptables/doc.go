// Package iptables parses the output of iptables-save: tables, chains and rules as values,
// and a rule as words. The daemon, its egress plugin and the doctor compare these with what
// they want (daemon/hostnet/rules, daemon/hostnet/egress).
//
// The package is pure.
package iptables
