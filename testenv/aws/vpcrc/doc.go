// Package vpcrc simulates the VPC resource controller (release line v1.8.2) against a real
// kube-apiserver and a fakeaws.World: the control-plane half of security groups for pods (EKS
// User Guide, "Security groups for Pods").
//
// [Start] watches Nodes, CNINodes and Pods. For each Node it creates the CNINode. For the feature
// SecurityGroupsForPods it attaches a trunk ENI at the highest free device index and sets the capacity vpc.amazonaws.com/pod-eni. For a bound pod
// that requests that resource it creates a branch ENI, the annotation and the events. Branch
// ENIs of deleted pods cool down in a queue that counts against the limit. A Node must carry
// a providerID ("aws:///AZ/i-…") that names an instance of the World.
//
// All waits are upstream's times [Options].Scale, so a test sees a cool-down of a minute in a
// second. [Faults] are faults of real clusters, set at run time. Event texts and annotation
// bytes match upstream, including its spelling mistakes.
//
// The decisions are pure functions: matching policies (policy.go), VLAN ids (vlan.go), the
// delete queue (queue.go), device indexes (trunk.go), the annotation (annotation.go).
//
// Not simulated: a restart; the webhooks: tests create pods that already request the resource; the
// cool-down of the ConfigMap amazon-vpc-cni; Windows; metrics, introspection, leader election; the
// periodic cleaner of leaked ENIs and the reconciliation of missed deletes (a watch misses none here); EC2's
// rate limits and retries, since the World's methods are called directly; the network
// (testenv/network/vpc makes the VLANs); the status of a CNINode, which the open-source controller does
// not write either. ENIConfigs, policies and ServiceAccounts are read from the API server
// instead of a cache, so a pod never misses a policy that was created before it. No garbage
// collector removes the CNINode of a deleted Node.
package vpcrc
