// Package ips is cnictl ips: the addresses of all nodes in one list, and who has one of
// them.
package ips
