// Package vpcrc simulates the VPC resource controller (release line v1.8.2) for one Node, against a
// real kube-apiserver and a fakeaws.World: the control-plane half of security groups for pods (EKS
// User Guide, "Security groups for Pods").
//
// [Start] watches the Node, its CNINode and its Pods. It creates the CNINode. For the feature
// SecurityGroupsForPods it attaches a trunk ENI at the highest free device index and sets the
// capacity vpc.amazonaws.com/pod-eni. For a bound pod that requests that resource it creates a
// branch ENI, the annotation and the events. Branch ENIs of pods that are gone cool down, and count
// against the limit until they are deleted. The Node must carry a providerID ("aws:///AZ/i-…") that
// names an instance of the World.
//
// All waits are upstream's times [Options].Scale, so a test sees a cool-down of a minute in a
// second. [Faults] are faults of real clusters, set at run time. Event texts and annotation
// bytes match upstream.
//
// Not simulated: SecurityGroupPolicies and the webhooks: tests create pods that already request the
// resource, and branch ENIs have the groups of the trunk; the completion, the finalizer and the
// re-creation of a CNINode; the label has-trunk-attached; a deleted Node; a restart; the cool-down of
// the ConfigMap amazon-vpc-cni; Windows; EC2's rate limits, since the World's methods are called
// directly; the network (testenv/network/vpc makes the VLANs).
package vpcrc
