package vpcrc

import "time"

// Faults are independent faults. Some can also be caused in the World: a full subnet, a type
// that cannot trunk, a node without a free slot.
type Faults struct {
	// Faults of the node.
	NoCNINode           bool // no CNINode is created
	CNINodeNotRecreated bool // a CNINode deleted while its Node exists is not recreated
	UnsupportedType     bool // the controller's table does not list the type
	NoDeviceIndex       bool // no device index is free for the trunk
	TrunkUnauthorized   bool // EC2 refuses the trunk: UnauthorizedOperation
	// TrunkMetadataLag, before Scale, replaces Timing.TrunkMetadataAfter: how long until
	// the metadata service shows the trunk.
	TrunkMetadataLag time.Duration

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
	DeleteFails      bool          // EC2 deletes no branch: its VLAN id is lost after three rounds

	// Faults of a restart: EC2's lists lack the branches, so their VLAN ids seem free. How EC2
	// reacts to a VLAN id in use is unknown. Here it refuses or, with CollideVLANs, accepts it, so
	// that two pods share the id.
	LoseBranches, CollideVLANs bool

	// Faults of the webhooks.
	WebhookDown      bool // the connection breaks: pods are admitted unchanged
	NoServiceAccount bool // no ServiceAccount is found: pods are denied
}

// wrongCIDR is the network of AnnotationCIDR: a documentation range, so part of no VPC.
const wrongCIDR = "192.0.2.0/24"
