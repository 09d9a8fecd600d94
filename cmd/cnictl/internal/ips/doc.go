// Package ips implements cnictl ips: the addresses of all nodes in one list, and which pod
// has a given address.
package ips
