package netnames

// CheckpointVersion is the only version of the checkpoint file that was ever written.
const CheckpointVersion = "vpc-cni-ipam/1"

// Names of sandboxes in the checkpoint that no runtime gives.
const (
	// MigratedNetwork and MigratedIfName are those of pods that v1.7 and v1.8 of upstream
	// took over from the container runtime. A DEL that finds nothing under the real names
	// looks here, with the same container id.
	MigratedNetwork = "_migrated-from-cri"
	MigratedIfName  = "unknown"
	// RecoveredNetwork and RecoveredIfName are those of allocations that the daemon rebuilt from the
	// kernel, after the file was lost. Their container id is the name of the host link.
	RecoveredNetwork = "_recovered"
	RecoveredIfName  = "unknown"
)
