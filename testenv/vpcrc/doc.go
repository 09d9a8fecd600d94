// Package vpcrc plays the VPC resource controller (release line v1.8.2) against a real
// kube-apiserver and a fakeaws.World: the control-plane half of security groups for
// pods, as spec/security-groups-for-pods.md describes it.
//
// [Start] watches Nodes, CNINodes, Pods and the ConfigMap amazon-vpc-cni. For a Node it
// makes the CNINode; for the feature SecurityGroupsForPods a trunk ENI at the highest
// free device index and the capacity vpc.amazonaws.com/pod-eni; for a bound pod that
// requests that resource a branch ENI, the annotation and the events. Branch ENIs of deleted
// pods cool down in a queue that counts against the limit. A Node must carry a
// providerID ("aws:///AZ/i-…") that names an instance of the World.
//
// All waits are those of upstream times [Options].Scale, so that a test sees a
// cool-down of a minute in a second. [Faults] are faults of real clusters, set at run time.
// [Controller.Restart] rebuilds the state as a restart or a change of leader does. Texts of events and the bytes of the annotation are upstream's,
// its spelling mistakes included.
//
// With [Options].Webhook the three webhooks are real: an HTTPS server of this process,
// registered under upstream's names and called by the API server over the loopback.
// Without it [Controller.Mutate] changes a pod as the mutating one would.
//
// The decisions are pure: matching policies (policy.go), VLAN ids (vlan.go), the delete
// queue (queue.go), device indexes (trunk.go), the annotation (annotation.go), admission
// (admission.go).
//
// It does not do: Windows; metrics, introspection, leader election; the periodic cleaner
// of leaked ENIs and the reconcile of missed deletes (a watch misses none here); EC2's
// rate limits and retries, since it calls the World's methods and not the wire; anything
// of the network (testenv/vpc makes the VLANs), and no status of a CNINode, which the
// open controller does not write either. ENIConfigs, policies and ServiceAccounts are read
// from the API server and not from a cache, so that a pod never misses a policy that was
// created before it. No garbage collector removes the CNINode of a deleted Node.
package vpcrc
