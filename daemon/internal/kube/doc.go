// Package kube is the daemon's side of the Kubernetes API: its Node, the pods bound to
// it, its CNINode and the cluster's ENIConfigs are read and watched; features of the
// CNINode, one annotation of pods and events are written. What the objects mean is
// decided in daemon/cluster.
//
// It stands on client-go's REST client alone, which brings credentials, their renewal
// and TLS. Neither the typed clientset nor a scheme of core/v1 is linked, and
// client-go's reflector is not used:
//
//   - Objects are decoded from the stream one by one into structs of the few fields
//     that are used. Nothing else is ever held, so neither long lists nor fat objects
//     cost memory, and every element, frame and answer has a limit.
//   - The reflector pauses for up to 60 s between attempts and writes to the process's
//     stderr through klog. Here nothing pauses for longer than 30 s, all pauses end at
//     once when the API server is back, and problems are logged when they change.
//
// What it does the same: it lists at resource version 0 and later at no older version
// than it saw, both of which the API server answers from its own cache; it watches with
// bookmarks from the last version seen; it lists again when that version is gone.
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
