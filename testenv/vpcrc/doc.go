// Package vpcrc simulates the VPC resource controller (release line v1.8.2) against a real
// kube-apiserver and a fakeaws.World: the control-plane half of security groups for pods (EKS
// User Guide, "Security groups for Pods").
//
// [Start] watches Nodes, CNINodes, Pods and the ConfigMap amazon-vpc-cni. For each Node it
// creates the CNINode. For the feature SecurityGroupsForPods it attaches a trunk ENI at the
// highest free device index and sets the capacity vpc.amazonaws.com/pod-eni. For a bound pod
// that requests that resource it creates a branch ENI, the annotation and the events. Branch
// ENIs of deleted pods cool down in a queue that counts against the limit. A Node must carry
// a providerID ("aws:///AZ/i-…") that names an instance of the World.
//
// All waits are upstream's times [Options].Scale, so a test sees a cool-down of a minute in a
// second. [Faults] are faults of real clusters, set at run time. [Controller.Restart] rebuilds
// the state as a restart or a change of leader does. Event texts and annotation bytes match
// upstream, including its spelling mistakes.
//
// With [Options].Webhook the three webhooks are real: an HTTPS server in this process,
// registered under upstream's names and called by the API server over the loopback.
// Without it, [Controller.Mutate] changes a pod as the mutating webhook would.
//
// The decisions are pure functions: matching policies (policy.go), VLAN ids (vlan.go), the
// delete queue (queue.go), device indexes (trunk.go), the annotation (annotation.go), admission
// (admission.go).
//
// Not simulated: Windows; metrics, introspection, leader election; the periodic cleaner
// of leaked ENIs and the reconciliation of missed deletes (a watch misses none here); EC2's
// rate limits and retries, since the World's methods are called directly; the network
// (testenv/vpc makes the VLANs); the status of a CNINode, which the open-source controller does
// not write either. ENIConfigs, policies and ServiceAccounts are read from the API server
// instead of a cache, so a pod never misses a policy that was created before it. No garbage
// collector removes the CNINode of a deleted Node.
package vpcrc
