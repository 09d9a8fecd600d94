package catalogue

import "cnictl/daemon/api/cause"

var configCauses = []Entry{
	{
		Code: "config/min-ip-only", Title: "MINIMUM_IP_TARGET without WARM_IP_TARGET freezes the pool", Severity: Error,
		Shows:      "The pool grows to MINIMUM_IP_TARGET and no further: every address is assigned, no EC2 call is made and none fails.",
		Required:   []string{"intro.enis", "k8s.ds", "log.ipamd"},
		Supporting: []string{"host.env", "metrics", "intro.env"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Confirmed, Suspected},
		Check:      Check{"Check both settings, and that no EC2 call fails: a failing call is another cause.", settings},
		Fixes: []Fix{
			{Text: "Set WARM_IP_TARGET as well, to at least 1.", Command: setEnv + "WARM_IP_TARGET=1", SideEffect: rolled, Risk: Restart},
		},
		Links: []string{issue + "2650", upstream + "docs/eni-and-ip-target.md"},
		Ours:  "the pool also grows for pods with MINIMUM_IP_TARGET alone",
	},
	{
		Code: "config/warm-waste", Title: "warm addresses drain the subnets", Severity: Warning,
		Shows:      "Nodes hold far more addresses than pods use, and a subnet is nearly full because of it.",
		Required:   []string{"intro.enis", "ec2.subnet"},
		Supporting: []string{"k8s.ds", "intro.summary"},
		Ceiling:    Ceilings{None, Confirmed, None, None},
		Check:      Check{"Compare the addresses held with those in use, by subnet.", "cnictl subnets"},
		Fixes: []Fix{
			{Text: "Replace WARM_ENI_TARGET by targets in addresses.", Command: setEnv + "WARM_IP_TARGET=2 MINIMUM_IP_TARGET=PODS_PER_NODE", SideEffect: rolled + " More EC2 calls: watch for throttling in clusters of hundreds of nodes.", Risk: Restart},
		},
		Links: []string{issue + "2294", issue + "2793", upstream + "docs/eni-and-ip-target.md"},
	},
	{
		Code: "config/invalid", Title: "the daemon rejects or misreads its settings", Severity: Critical,
		Shows:      "aws-node does not become ready, or restarts every minute or two (often with exit code 137, because the liveness probe ends it), and its log names a setting.",
		Required:   []string{"k8s.ds"},
		Supporting: []string{"log.awsnode", "log.ipamd", "host.env", "k8s.ds.pods", "intro.config"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Confirmed, Confirmed},
		Check:      Check{"Compare the environment of aws-node with its release's documentation. Values that do not parse silently fall back to the default.", settings},
		Fixes: []Fix{
			{Text: "Correct the setting.", Command: setEnv + "NAME=VALUE", SideEffect: rolled, Risk: Restart},
			{Text: "If only the image was changed, apply the whole manifest or add-on of that release.", Command: "aws eks update-addon --cluster-name CLUSTER --addon-name vpc-cni --addon-version VERSION --resolve-conflicts PRESERVE", SideEffect: rolled, Risk: Restart},
			{Text: "Correct or remove the label of the Node, and of the node group or NodePool that sets it.", Command: "kubectl label node NODE LABEL=VALUE --overwrite", SideEffect: "The pool follows at once."},
		},
		Links:    []string{upstream + "docs/troubleshooting.md", upstream + "README.md"},
		Upstream: "all; an image of v1.10 or later without ENABLE_IPv4 and ENABLE_IPv6 does not start",
		Explains: []string{"boot/ipamd-down", "boot/probe-timeout", "boot/rollout"},
		Signatures: []Signature{
			{Text: "AWS_VPC_K8S_PLUGIN_LOG_FILE cannot be set to stdout", Where: inStart},
			{Text: "AWS_VPC_K8S_CNI_VETHPREFIX cannot be", Where: inStart},
			{Text: "POD_SECURITY_GROUP_ENFORCING_MODE must be set to either 'strict' or 'standard'", Where: inStart},
			{Text: "IP_COOLDOWN_PERIOD MUST be a valid positive integer", Where: inStart},
			{Text: "AWS_VPC_ENI_MTU…576…9001", Where: inStart},
			{Text: "AWS_VPC_ENI_MTU…1280…9001", Where: inStart},
			{Text: "POD_MTU…576…9001", Where: inStart},
			{Text: "POD_MTU…1280…9001", Where: inStart},
			{Text: "Setting WARM_PREFIX_TARGET = 0 is not supported while", Where: inStart},
			{Text: "IPv4 and IPv6 are both enabled", Where: inLog},
			{Text: "IPv4 and IPv6 are both disabled", Where: inLog},
			{Text: "IPv6 is supported only in Prefix Delegation mode", Where: inLog},
			{Text: "IPv6 is only supported in Prefix delegation Mode", Where: inLog, Note: "on a type without prefix delegation it is ip/pd-unsupported-type"},
			{Text: "invalid Network policy mode", Where: inLog},
			{Text: "ipamd: failed to validate configuration", Where: inLog},
			{Text: "enable multi-nic feature on CNI for creating multi-nic-attachment pods", Where: inLog},
			{Text: "PD is not enabled. V6 is only supported in PD mode", Where: inLog},
		},
		Daemon: []cause.Code{cause.MultiNICDisabled},
	},
}
