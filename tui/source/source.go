// Package source is what the screens know of the world: an immutable view of a fleet
// that changes now and then, one node in detail, and the clock. A live fleet, a
// recording and a test's own values are all one.
package source

import (
	"context"
	"time"

	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// Source gives the screens their data. Its methods may be called from any goroutine and
// none but Detail waits for anything.
type Source interface {
	// View is the newest picture of the fleet.
	View() *store.View
	// Changed fires when View has something new, at most five times a second.
	Changed() <-chan struct{}
	// Focus says what is looked at, so that it is read first.
	Focus(Focus)
	// Refresh reads what is looked at now.
	Refresh()
	// Pace sets the time between two samples of what is looked at, and whether to sample
	// at all.
	Pace(Pace)
	// Detail reads documents of one node.
	Detail(ctx context.Context, node string, want Want, q Query) Detail
	// Stats tells how the reading goes.
	Stats() Stats
	// Now is the source's time: the clock, or where a recording stands.
	Now() time.Time
	// Title names the fleet: the kubeconfig's context, a file.
	Title() string
}

// Recording is a source that plays what was recorded: it can be wound, and its time goes
// faster or slower.
type Recording interface {
	Source
	// Range is the time from its beginning to its end.
	Range() (from, to time.Time)
	// Seek goes to a time within it; it may take a while.
	Seek(to time.Time)
	// Speed sets how fast time goes, 1 is as it was, and Rate tells it.
	Speed(factor float64)
	Rate() float64
}

// The types are those of every source.
type (
	// Focus is what is on the screen.
	Focus = watch.Focus
	// Pace of the sampling.
	Pace = watch.Pace
	// Want names documents of a node.
	Want = watch.Want
	// Query narrows documents.
	Query = watch.Query
	// EventsAfter is where a reader of events stands.
	EventsAfter = watch.EventsAfter
	// Detail are documents of one node.
	Detail = watch.Detail
	// KubeEvent is an event of Kubernetes.
	KubeEvent = watch.KubeEvent
	// ContainerLogQuery chooses lines of a container's log.
	ContainerLogQuery = watch.ContainerLogQuery
	// NodeUse is what Kubernetes alone tells of the use of a node.
	NodeUse = watch.NodeUse
	// CNINode is a node's.
	CNINode = watch.CNINode
	// CNINodeFeature is SecurityGroupsForPods or CustomNetworking.
	CNINodeFeature = watch.CNINodeFeature
	// PodQuery chooses pods of a cluster.
	PodQuery = watch.PodQuery
	// ClusterPods are the pods that Kubernetes has.
	ClusterPods = watch.ClusterPods
	// Pod is a pod as Kubernetes tells of it.
	Pod = watch.Pod
	// Stats tell how the reading goes.
	Stats = watch.Stats
)

// Documents of a node.
const (
	WantENIs     = watch.WantENIs
	WantPlan     = watch.WantPlan
	WantEvents   = watch.WantEvents
	WantFailures = watch.WantFailures
	WantConfig   = watch.WantConfig
	WantLogs     = watch.WantLogs
	WantPod      = watch.WantPod
	WantPods     = watch.WantPods // the pods that Kubernetes has on the node

	WantKubeEvents   = watch.WantKubeEvents   // what Kubernetes tells of the node and its pods
	WantContainerLog = watch.WantContainerLog // of a daemon that does not serve its log
	WantNodeUse      = watch.WantNodeUse      // of a node whose daemon tells nothing
	WantClusterPods  = watch.WantClusterPods  // of all nodes and none
)
