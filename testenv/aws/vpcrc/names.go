package vpcrc

// Names of what the controller reads and writes.
const (
	podENIKey         = "vpc.amazonaws.com/pod-eni" // resource and annotation
	trunkLabel        = "vpc.amazonaws.com/has-trunk-attached"
	eniConfigLabel    = "vpc.amazonaws.com/eniConfig"
	computeTypeLabel  = "eks.amazonaws.com/compute-type"
	cninodeFinalizer  = "networking.k8s.aws/resource-cleanup"
	cninodeClusterTag = "cluster.k8s.amazonaws.com/name"
	cninodeManager    = "vpc-resource-controller"
	featurePodGroups  = "SecurityGroupsForPods"
	featureCustom     = "CustomNetworking"
	eventComponent    = "vpc-resource-controller"
	trunkDescription  = "aws-k8s-trunk-eni"
	branchDescription = "aws-k8s-branch-eni"
	tagInstance       = "node.k8s.amazonaws.com/instance_id"
	tagOwner          = "eks:eni:owner"
	tagOwnerValue     = "eks-vpc-resource-controller"
	tagClusterPrefix  = "kubernetes.io/cluster/"
	tagVLAN           = "vpcresources.k8s.aws/vlan-id"
	tagTrunk          = "vpcresources.k8s.aws/trunk-eni-id"
)

func trunkTags(instanceID string) map[string]string {
	return map[string]string{tagInstance: instanceID, tagOwner: tagOwnerValue, tagClusterPrefix + clusterName: "owned"}
}

func branchTags(instanceID, trunkID, vlan string) map[string]string {
	t := trunkTags(instanceID)
	t[tagVLAN], t[tagTrunk] = vlan, trunkID
	return t
}
