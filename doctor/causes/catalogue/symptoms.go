package catalogue

import "cnictl/daemon/api/cause"

// Symptoms returns texts and codes that are not causes: what many causes look like, and what is
// normal.
func Symptoms() []Symptom { return symptoms }

var symptoms = []Symptom{
	{
		Title:   "a pod got no address",
		Meaning: "The daemon answered that it had none; the reason is in ipamd's log (and with our daemon in the pod's events).",
		Check:   Check{"Read the pod's report, or explain ipamd's log lines of that moment.", "cnictl pod NAMESPACE/POD"},
		Causes:  []string{"ip/*", "cap/*", "config/*", "eni/*", "cfgnet/*", "aws/*", "sgp/*", "boot/backing-store", "boot/rbac"},
		Signatures: []Signature{
			{Text: "failed to assign an IP address to container", Where: inPlugin},
			{Text: "Returning failure response for AddNetwork:", Where: inLog},
		},
		Daemon: []cause.Code{cause.Internal, cause.NotSupported},
	},
	{
		Title:   "the pool had nothing to give",
		Meaning: "No address could be assigned and the pool did not grow in time: other lines say why.",
		Check:   Check{"Read the node's report: it shows what keeps the pool from growing.", showNode},
		Causes:  []string{"ip/*", "cap/*", "config/min-ip-only", "eni/*", "cfgnet/*", "aws/*"},
		Signatures: []Signature{
			{Text: "DataStore has no available IP/Prefix addresses", Where: inLog},
			{Text: "AssignPodIPAddress: no available IP/Prefix addresses", Where: inLog},
			{Text: "Failed to assign IPs from network card", Where: inLog, Note: "what follows says why"},
			{Text: "awscni_no_available_ip_addresses", Where: []string{"metrics"}, Note: "only while it grows"},
		},
		Daemon: []cause.Code{cause.PoolDry},
	},
	{
		Title:   "the plugin got no usable answer from the daemon",
		Meaning: "The call failed, or the daemon returned an error instead of an address. What follows the text says which.",
		Check:   Check{"Read the rest of the line.", podEvents},
		Causes:  []string{"boot/*", "aws/imds-unreachable", "aws/credentials", "net/nic-allowance"},
		Signatures: []Signature{
			{Text: "add cmd: Error received from AddNetwork gRPC call", Where: inPlugin},
		},
	},
	{
		Title:      "the daemon is starting or stopping",
		Meaning:    "Normal for some seconds at every restart; kubelet retries.",
		Check:      Check{"Check whether aws-node keeps restarting.", daemonPods},
		Causes:     []string{"boot/*", "config/invalid"},
		Signatures: []Signature{{Text: "AWS CNI is terminating", Where: inLog}},
		Daemon:     []cause.Code{cause.DaemonTerminating, cause.DaemonStarting},
	},
	{
		Title:      "one address of a prefix is taken",
		Meaning:    "Printed for each address of a prefix that is in use; normal while others are free.",
		Check:      Check{"Check whether the node has free addresses.", showNode},
		Causes:     []string{"ip/*", "cap/*"},
		Signatures: []Signature{{Text: "no free IP available in the prefix - ", Where: inLog}},
	},
	{
		Title:      "an allocation of a pod that is gone was dropped",
		Meaning:    "Normal after pods ended while the daemon was down.",
		Check:      Check{"Make sure that the pod is gone. For a running pod, the cause is ip/live-allocation-dropped.", "cnictl node pods NODE"},
		Causes:     []string{"ip/live-allocation-dropped"},
		Signatures: []Signature{{Text: "stale IP allocation for ID(", Where: inLog}},
	},
	{
		Title:      "the daemon started without the API server",
		Meaning:    "No harm to ordinary pods: max-pods comes from a table until the API server answers (upstream v1.19.4 or later).",
		Check:      Check{"Check whether the API server answers now.", showLog},
		Causes:     []string{"boot/apiserver"},
		Signatures: []Signature{{Text: "Proceeding without API server connectivity", Where: inLog}},
	},
	{
		Title:   "a report of the resource controller",
		Meaning: "Part of a normal start of a node or a pod with security groups of its own, or of a change of its settings.",
		Check:   Check{"Look for a failure among the other events.", nodeEvents},
		Causes:  []string{"sgp/*"},
		Signatures: []Signature{
			{Text: "ResourceAllocated", Where: inEvents},
			{Text: "NodeTrunkInitiated", Where: inEvents},
			{Text: "BranchENICoolDownPeriodUpdated", Where: inEvents},
			{Text: "CNINodeDeletionFailed", Where: inEvents, Note: "the CNINode of a node that is gone is left behind"},
		},
	},
	{
		Title:   "the pod's sandbox is gone",
		Meaning: "The network namespace was removed before the plugin ran; kubelet makes a new sandbox.",
		Check:   Check{"Check whether the pod's sandbox keeps changing.", podEvents},
		Daemon:  []cause.Code{cause.NetnsGone},
	},
	{
		Title:   "the pod's network is not as it was set up",
		Meaning: "CHECK or STATUS found a difference: a link, rule or route was changed by something else.",
		Check:   Check{"Look for repairs in the daemon's events.", "cnictl events --daemon --nodes NODE"},
		Causes:  []string{"net/rules-flushed", "net/stale-rules", "net/veth-mac-changed"},
		Daemon:  []cause.Code{cause.PodNetworkChanged},
	},
	{
		Title:   "the checkpoint (ipam.json) could not be read",
		Meaning: "Garbage collection left everything in place, or a starting daemon rebuilt its allocations from the kernel. Pods start as usual, and the next allocation writes the file again.",
		Check:   Check{"Check the file on the node.", "ls -l /var/run/aws-node/"},
		Causes:  []string{"boot/checkpoint", "boot/backing-store"},
		Daemon:  []cause.Code{cause.CheckpointUnreadable},
	},
	{
		Title:      "two pods of a node would have host links of the same name",
		Meaning:    "A link's name is a hash of 44 bits of the pod's namespace and name, so this is no accident: someone chose a name that gives a pod the link of another. The pod that has the link keeps it, and the other gets no network.",
		Check:      Check{"The pod's event names the other pod. Find out who created the two, and give one another name.", podEvents},
		Signatures: []Signature{{Text: "its host link would have the same name, ending in ", Where: inEvents}},
		Daemon:     []cause.Code{cause.LinkConflict},
	},
	{
		Title:   "the pool of a cordoned node does not grow",
		Meaning: "Reported by daemons that do not grow the pool of a cordoned node.",
		Check:   Check{"Check the node's taints.", "kubectl get node NODE -o jsonpath='{.spec.taints}'"},
		Causes:  []string{"eni/node-unschedulable"},
		Daemon:  []cause.Code{cause.NodeUnschedulable},
	},
}
