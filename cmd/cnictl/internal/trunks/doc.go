// Package trunks is cnictl trunks: nodes with a trunk ENI or that should have one, and
// the pods that wait for a branch ENI. Their content is from daemon/fleet/trunks; here it
// is read, listed and printed.
package trunks
