// Package events implements cnictl events: what happened to pod addresses in the cluster,
// according to Kubernetes and the daemons.
package events
