package vpcrc

import "time"

// Faults are independent faults. Others are caused in the World: a full subnet, a type
// that cannot trunk, a node without a free slot.
type Faults struct {
	// Faults of the node.
	CNINodeNotRecreated bool // a CNINode deleted while its Node exists is not recreated
	TrunkUnauthorized   bool // EC2 refuses the trunk: UnauthorizedOperation

	// Faults of the pod.
	SubnetFull       bool          // EC2 has no address for a branch
	AtCapacity       bool          // the type's limit of branches appears to be reached
	AnnotationDelay  time.Duration // before Scale: 5, 60 or 300 s happen in practice
	AnnotationDenied bool          // the API server rejects the annotation
	AnnotationTwice  bool          // one more branch than requested
	AnnotationVLANID bool          // "vlanID" instead of "vlanId"
	AnnotationNoIPv6 bool          // without the keys for IPv6, as in 2021
	AnnotationCIDR   bool          // subnetCidr belongs to another network
	ReuseVLANs       bool          // the VLAN id of an ended pod is free at once
}

// wrongCIDR is the network of AnnotationCIDR: a documentation range, so part of no VPC.
const wrongCIDR = "192.0.2.0/24"
