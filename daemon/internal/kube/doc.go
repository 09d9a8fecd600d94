// Package kube is the daemon's side of the Kubernetes API: its Node, the pods bound to
// it, its CNINode and the cluster's ENIConfigs are read and watched; features of the
// CNINode, one annotation of pods and events are written. What the objects mean is
// decided in daemon/cluster.
//
// Lists and watches are daemon/kubeclient's; the rest stands on client-go's REST client.
// Neither the typed clientset nor a scheme of core/v1 is linked: objects are decoded into
// structs of the few fields that are used. Nothing pauses for longer than 30 s, all pauses
// end at once when the API server is back, and problems are logged when they change.
//
// Caches are of this node only, by field selectors. Until one is in step, and for a pod
// that it does not have (pods are often asked for before the watch shows them), a GET
// serves; while the API server is away the cache goes on serving. Every call has a time
// limit of its own and ends with its context. Events wait for the API server's return, of
// each kind the newest. Nothing limits the rate of requests, as in upstream, because
// nothing here asks in a loop without a pause that grows.
//
// The RBAC rules used are those of spec/ipamd.md §9.6.
package kube
