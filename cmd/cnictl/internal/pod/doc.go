// Package pod is cnictl pod: where the address of one pod came from, how it is set up,
// and its history; for a pod without an address, why.
//
// Run gathers evidence from Kubernetes and from the node's daemon; the report (report.go,
// branch.go) is pure.
package pod
