package vpcrc

import "time"

// Faults are independent faults. Some can also be caused in the World: a full subnet, a type
// that cannot trunk, a node without a free slot.
type Faults struct {
	// Of the node.
	NoCNINode           bool // none is created
	CNINodeNotRecreated bool // one that is deleted while its Node exists is not recreated
	UnsupportedType     bool // the controller's table does not list the type
	NoDeviceIndex       bool // none is free for the trunk
	TrunkUnauthorized   bool // EC2 refuses the trunk: UnauthorizedOperation
	// TrunkMetadataLag, before Scale, is how much later the metadata service shows the
	// trunk instead of Timing.TrunkMetadataAfter.
	TrunkMetadataLag time.Duration

	// Of the pod.
	SubnetFull       bool          // EC2 has no address for a branch
	AtCapacity       bool          // the type's limit of branches seems reached
	AnnotationDelay  time.Duration // before Scale: 5, 60 or 300 s happen
	AnnotationDenied bool          // the API server refuses it
	AnnotationTwice  bool          // one more branch than was asked for
	AnnotationVLANID bool          // "vlanID" instead of "vlanId"
	AnnotationNoIPv6 bool          // without the keys for IPv6, as of 2021
	AnnotationCIDR   bool          // subnetCidr is another network's
	ReuseVLANs       bool          // an ended pod's VLAN id is free at once
	DeleteFails      bool          // EC2 deletes no branch: its VLAN id is lost after three rounds

	// Of a restart: EC2's lists lack the branches, so their VLAN ids seem free. EC2's answer
	// to a VLAN id in use is unknown; here it refuses or, with CollideVLANs, accepts it, and
	// two pods have the same.
	LoseBranches, CollideVLANs bool

	// Of the webhooks.
	WebhookDown      bool // the connection breaks: pods are let through as they are
	NoServiceAccount bool // none is found: pods are denied
}

// wrongCIDR is the network of AnnotationCIDR: for documentation, so in no VPC.
const wrongCIDR = "192.0.2.0/24"
