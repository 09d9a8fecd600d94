// Package cluster interprets the Kubernetes objects that the daemon uses: its Node, the
// pods bound to it, its CNINode, and the ENIConfig that custom networking selects.
//
// It is pure: the adapter daemon/internal/kube turns API objects into these values and
// carries out what is decided here. All data from the API is bounded and checked before
// use, because anyone who may annotate a pod can write it.
package cluster
