// Package kube is the daemon's client of the Kubernetes API. It reads and watches the Node,
// the pods bound to it, its CNINode and the cluster's ENIConfigs; it writes features of the
// CNINode, one annotation of pods, and events. Package daemon/cluster interprets the
// objects.
//
// Lists and watches use daemon/kubeclient, the rest client-go's REST client. Neither the
// typed clientset nor a scheme of core/v1 is linked: objects are decoded into structs of
// the few fields used. No pause exceeds 30 s, all pauses end when the API server is back,
// and problems are logged when they change.
//
// Except for ENIConfigs, field selectors limit the caches to this node. Until a cache is
// synced, and for a pod that it does not have (pods are often requested before the watch
// shows them), a GET serves; during an outage of the API server the cache keeps serving.
// Every call has its own time limit and ends with its context. During an outage the newest
// event of each kind waits. As in upstream, requests are not rate-limited, because no loop
// here repeats a request without a pause.
//
// The RBAC rules used are those of the ClusterRole aws-node, in deploy.
package kube
