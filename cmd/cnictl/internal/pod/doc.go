// Package pod implements cnictl pod: where one pod's address came from, how it is set up, and
// its history; for a pod without an address, why it has none.
//
// Run gathers evidence from Kubernetes and the node's daemon. The report (report.go,
// branch.go) is pure.
package pod
