// Package cluster says what Kubernetes objects mean to the daemon: its Node, the pods
// bound to it, its CNINode, the ENIConfig that custom networking chooses.
//
// It is pure: the adapter daemon/internal/kube turns API objects into these values and
// carries out what is decided here. All that comes from the API is bounded and checked
// before anything follows from it, because whoever may annotate a pod may write it.
package cluster
