// Package pod is cnictl pod: where the address of one pod came from, how it is wired, and
// what happened to it; of a pod without an address, why.
//
// Run gathers evidence from Kubernetes and from the node's daemon; what is made of it
// (report.go, branch.go) is pure.
package pod
