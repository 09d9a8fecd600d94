// Package ips is cnictl ips: the addresses of all nodes in one list, and which pod has
// one of them.
package ips
