package netnames

// CheckpointFile is the default path of the checkpoint (AWS_VPC_K8S_CNI_BACKING_STORE).
const CheckpointFile = "/var/run/aws-node/ipam.json"

// CheckpointVersion is the only version of the checkpoint file ever written.
const CheckpointVersion = "vpc-cni-ipam/1"

// Sandbox names in the checkpoint that no runtime assigns.
const (
	// MigratedNetwork and MigratedIfName name the pods that upstream v1.7 and v1.8 took
	// over from the container runtime. A DEL that finds nothing under the real names looks
	// here, with the same container id.
	MigratedNetwork = "_migrated-from-cri"
	MigratedIfName  = "unknown"
	// RecoveredNetwork and RecoveredIfName name the allocations that the daemon rebuilt
	// from the kernel after the file was lost. Their container id is the name of the host
	// link.
	RecoveredNetwork = "_recovered"
	RecoveredIfName  = "unknown"
)
