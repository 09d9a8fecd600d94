// Package trunks implements cnictl trunks: nodes that have or should have a trunk ENI, and
// the pods that wait for a branch ENI. daemon/fleet/inventory computes the content; this package
// reads, lists and prints.
package trunks
