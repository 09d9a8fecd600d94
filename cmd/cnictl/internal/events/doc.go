// Package events is cnictl events: what happened to pod addresses in the cluster, from
// Kubernetes and the daemons.
package events
