// Package events is cnictl events: what happened in the cluster that concerns pod
// addresses, as Kubernetes and the daemons tell.
package events
