package catalogue

import (
	"slices"

	"cnictl/daemon/api/cause"
)

var npCauses = []Entry{
	{
		Code: "np/agent-unreachable", Title: "the network policy agent does not answer", Severity: Error,
		Shows:      "\"add cmd: failed to setup network policy\": NETWORK_POLICY_ENFORCING_MODE is set, but the agent's container is absent or crashes, or its socket is missing. The address is returned only with kubelet's DEL.",
		Required:   []string{"k8s.ds", "k8s.ds.pods"},
		Supporting: []string{"log.plugin", "host.run", "k8s.evt", "log.np", "log.kubelet"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Probable, Confirmed},
		Check:      Check{"Check whether the agent's container runs.", "kubectl -n kube-system get pods -l k8s-app=aws-node -o wide; kubectl -n kube-system logs POD -c aws-eks-nodeagent --tail=50"},
		Fixes: slices.Concat([]Fix{
			{Text: "Restore the container: apply the whole manifest or add-on.", Command: "aws eks update-addon --cluster-name CLUSTER --addon-name vpc-cni --addon-version VERSION --resolve-conflicts OVERWRITE", SideEffect: rolled + " Changes made by hand are lost.", Risk: Restart},
			{Text: "If it was removed on purpose, remove the setting too.", Command: setEnv + "NETWORK_POLICY_ENFORCING_MODE-", SideEffect: rolled + " Network policies are no longer enforced on new pods.", Risk: Restart},
		}, agentFixes),
		Links:    []string{issue + "3254", issue + "2897"},
		Upstream: "v1.14.0 or later; the setting can be left out since v1.19.4",
		Signatures: []Signature{
			{Text: "add cmd: failed to setup network policy", Where: inPlugin},
			{Text: "Failed to connect to network policy agent", Where: inPlugin},
			{Text: "del cmd: failed to process delete request…network policy", Where: inPlugin},
		},
		Daemon:   []cause.Code{cause.PolicyAgentUnreachable},
		Explains: []string{"np/agent-failing"},
	},
	{
		Code: "np/agent-version-skew", Title: "policy agent and CNI are from incompatible releases", Severity: Error,
		Shows:      "Both containers run, but one uses a TCP port and the other a socket: the CNI serves ipamd.sock since v1.23.0 (agent v1.4.1), the agent npa.sock since v1.2.6 (CNI v1.20.2). cnictl's daemon has both sockets and no port, so it needs an agent from v1.4.1 on.",
		Required:   []string{"k8s.ds"},
		Supporting: []string{"log.np", "log.plugin", "host.run", "host.listen"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Probable, Confirmed},
		Check:      Check{"Compare the versions of the two images.", "kubectl -n kube-system get daemonset aws-node -o jsonpath='{.spec.template.spec.containers[*].image}'"},
		Fixes: []Fix{
			{Text: "Use the agent that was shipped with the CNI: apply the whole manifest or add-on.", Command: "aws eks update-addon --cluster-name CLUSTER --addon-name vpc-cni --addon-version VERSION --resolve-conflicts PRESERVE", SideEffect: rolled, Risk: Restart},
		},
		Links:    []string{upstream + "CHANGELOG.md", issue + "3442"},
		Upstream: "v1.23.0 or later with agents before v1.4.1, and older ones with agents from then on; the same around v1.20.2 and v1.2.6",
		Explains: []string{"np/agent-unreachable", "np/agent-failing"},
		Signatures: []Signature{
			{Text: "Failed to connect to ipamd", Where: inAgent, Note: "if ipamd is up and the versions differ"},
		},
	},
	{
		Code: "np/attach-failed", Title: "the policy agent cannot attach its programs", Severity: Error,
		Shows:      "The agent answers, but refuses the pod: attaching the eBPF probe failed, or its reconcilers are not ready. The kernel is older than 5.10, bpffs is not mounted, or the CRDs are missing.",
		Required:   []string{"log.np"},
		Supporting: []string{"k8s.node", "k8s.np", "log.plugin", "host.pkg"},
		Ceiling:    Ceilings{Confirmed, Probable, Confirmed, Suspected},
		Check:      Check{"Check the kernel's release, the bpffs mount and the CRDs.", "uname -r; mount -t bpf; kubectl get crd policyendpoints.networking.k8s.aws"},
		Fixes: []Fix{
			{Text: "Apply the CRDs of the release.", Command: "kubectl apply -f CRDS.yaml"},
			{Text: "Mount bpffs on the node.", Command: "mount -t bpf bpffs /sys/fs/bpf"},
			{Text: "Use an AMI with kernel 5.10 or later.", Command: drain, SideEffect: replaced, Risk: Disruptive},
		},
		Links: []string{policy + "91", issue + "2540", eks + "network-policies-troubleshooting.html"},
		Signatures: []Signature{
			{Text: "Attaching eBPF probe failed", Where: inAgent, Fix: "np/attach-failed 2"},
			{Text: "One of the policy reconcilers is not ready", Where: inAgent},
			{Text: "Failed to setup default network policy for Pod Name", Where: inPlugin},
		},
		Daemon:   []cause.Code{cause.PolicyAgentRefused},
		Explains: []string{"np/agent-failing"},
	},
	{
		Code: "np/strict-default-deny", Title: "strict mode drops the traffic of pods without a policy", Severity: Warning,
		Shows:      "A pod starts and has no network: in strict mode all of its traffic is dropped until a policy selects it. This is by design.",
		Required:   []string{"k8s.ds", "k8s.pod", "k8s.np"},
		Supporting: []string{"log.np"},
		Ceiling:    Ceilings{Confirmed, Confirmed, None, Confirmed},
		Check:      Check{"Look for a policy that selects the pod.", "kubectl -n NAMESPACE get networkpolicies,policyendpoints.networking.k8s.aws"},
		Fixes: []Fix{
			{Text: "Write a policy that allows the pod's traffic.", Command: "kubectl apply -f POLICY.yaml", SideEffect: "Allows that traffic."},
			{Text: "Or use standard mode.", Command: setEnv + "NETWORK_POLICY_ENFORCING_MODE=standard", SideEffect: rolled + " Pods without a policy may then connect to anything.", Risk: Restart},
		},
		Links: []string{eks + "network-policies-troubleshooting.html", eks + "cni-network-policy.html"},
	},
	{
		Code: "np/agent-failing", Title: "the network policy agent does not run", Severity: Warning,
		Shows:      "aws-eks-nodeagent is not ready or restarts: policies of running pods stay as they are, changes have no effect, and where NETWORK_POLICY_ENFORCING_MODE is set the next pod fails.",
		Required:   []string{"k8s.ds.pods"},
		Supporting: []string{"k8s.ds", "log.np", "k8s.np"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Confirmed, Confirmed},
		Check:      Check{"Read the log of its last run.", "kubectl -n kube-system logs -l k8s-app=aws-node -c aws-eks-nodeagent --previous --tail 50"},
		Fixes:      agentFixes,
		Links:      []string{eks + "network-policies-troubleshooting.html"},
	},
}

// agentFixes serve the cause and the kind of observation that it explains.
var agentFixes = slices.Concat([]Fix{
	{Text: "Correct what its log names: a missing CRD, a port in use, an old kernel.", Command: "kubectl -n kube-system logs POD -c aws-eks-nodeagent --previous --tail 50"},
	{Text: "If no NetworkPolicy is used, turn the agent off in the values of the add-on or chart.", Command: `aws eks update-addon --cluster-name CLUSTER --addon-name vpc-cni --configuration-values '{"enableNetworkPolicy":"false"}' --resolve-conflicts PRESERVE`, SideEffect: rolled + " Policies are no longer enforced.", Risk: Disruptive},
}, stalledFixes, []Fix{undoRollout, {Text: "Restart aws-node on the node: the agent makes its socket when it starts.", Command: restartOne, SideEffect: restarted, Risk: Restart}})
