// Package cluster finds out from a Kubernetes API server which nodes exist, which of them run
// the daemon, and how to reach each. It also reads pods, events, logs and CNINodes for views of
// single nodes.
//
// It only reads. From nodes and aws-node pods it keeps only what a row needs; it reads other
// pods for one node at a time, or when all pods are requested. Lists are paged, and only the
// kept fields of objects are decoded.
package cluster
