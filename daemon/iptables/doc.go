// Package iptables reads what iptables-save prints: tables, chains and rules as values, and a
// rule as words. The daemon, its plugin for egress and the doctor compare these with what
// they want (daemon/hostnet/rules, daemon/hostnet/egress).
//
// The package is pure.
package iptables
