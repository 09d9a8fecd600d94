// Package kube reads a Kubernetes API server: which nodes exist, which of them run the daemon, and
// how to reach each; pods, events, logs and CNINodes of single nodes; and, as evidence, all objects
// that the doctor looks at. What an object means is decided here alone.
//
// It only reads. Of nodes and aws-node pods it keeps only what a row needs; it reads other pods for
// one node at a time, or when all pods are requested. Lists are paged, and objects are decoded one
// by one.
package kube
