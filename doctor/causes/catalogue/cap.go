package catalogue

import "cnictl/daemon/api/cause"

var capCauses = []Entry{
	{
		Code: "cap/max-pods", Title: "max-pods is higher than the node has addresses for", Severity: Error,
		Shows:      "Nodes full of pods in ContainerCreating although the subnets have room: the scheduler places more pods than the instance's interfaces can address. Typical reasons: custom networking, a trunk's slot, prefix delegation assumed but off, MAX_ENI, interfaces of others, a hard-coded table in the AMI.",
		Required:   []string{"k8s.node", "ec2.type", "intro.enis", "k8s.ds"},
		Supporting: []string{"log.ipamd", "host.kubelet", "ec2.eni", "imds", "intro.summary", "intro.failures"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Confirmed, Probable},
		Check:      Check{"Compare max-pods with what the node can hold. If interfaces or addresses can still be added, the subnet is short of addresses instead.", showNode},
		Fixes: []Fix{
			{Text: "Lower max-pods on new nodes (nodeadm, bootstrap arguments, Karpenter kubelet.maxPods; RESERVED_ENIS=1 with custom networking) and replace the old ones.", Command: drain, SideEffect: replaced, Risk: Disruptive},
			{Text: "Move surplus pods away now.", Command: DeletePod, SideEffect: recreated + " Cordon the node first, or they may come back to it.", Risk: Disruptive},
			{Text: "Or use prefix delegation on new nodes: 16 times the addresses.", Command: setEnv + "ENABLE_PREFIX_DELEGATION=true WARM_PREFIX_TARGET=1", SideEffect: "Nodes in use have to be replaced (ip/mode-mixed).", Risk: Disruptive},
		},
		Links:    []string{issue + "2892", issue + "3238", issue + "3094", issue + "2801", karpenter + "2273", eks + "choosing-instance-type.html"},
		Upstream: "all; the trunk gives no addresses to pods since v1.16.4",
		Always:   true,
		Signatures: []Signature{
			{Text: "Skipping ENI allocation as the max ENI limit is already reached", Where: inLog, Note: "a node that is full as intended says the same; compare max-pods"},
		},
		Daemon: []cause.Code{cause.PoolFull},
	},
	{
		Code: "cap/growth-stopped", Title: "the pool stopped growing at max-pods while addresses cannot be used", Severity: Error,
		Shows:      "The node has as many addresses as max-pods allows, but some are cooling or held for pods that are gone, and no more are requested.",
		Required:   []string{"intro.enis", "k8s.node"},
		Supporting: []string{"host.kubelet", "log.ipamd", "intro.summary"},
		Ceiling:    Ceilings{Confirmed, Probable, Confirmed, None},
		Check:      Check{"Count the addresses that are cooling or assigned to pods that are gone. If the node cannot attach more interfaces, the cause is cap/max-pods.", "cnictl node ips NODE --filter state!=free"},
		Fixes: []Fix{
			{Text: "Fix what makes the addresses unusable: ip/cooldown-saturated or ip/leaked-allocations.", Command: "cnictl doctor explain ip/leaked-allocations"},
			{Text: "Raise max-pods of new nodes by the number of pods that end during one cooldown.", SideEffect: "The scheduler may place that many more pods on a node.", Risk: Disruptive},
		},
		Links:  []string{issue + "1446", upstream + "docs/eni-and-ip-target.md"},
		Daemon: []cause.Code{cause.PoolFull},
	},
	{
		Code: "cap/eni-limit", Title: "MAX_ENI keeps the node below what its type allows", Severity: Error,
		Shows:      "The node has attached MAX_ENI interfaces and all addresses are used, although the instance type takes more interfaces.",
		Required:   []string{"intro.enis", "ec2.type", "k8s.ds"},
		Supporting: []string{"log.ipamd", "host.env", "k8s.node", "intro.summary"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Confirmed, None},
		Check:      Check{"Compare MAX_ENI with the instance type's limit.", settings},
		Fixes: []Fix{
			{Text: "Remove MAX_ENI, or raise it.", Command: setEnv + "MAX_ENI-", SideEffect: rolled, Risk: Restart},
		},
		Links: []string{upstream + "README.md"},
		Signatures: []Signature{
			{Text: "Skipping ENI allocation as the max ENI limit is already reached", Where: inLog, Note: "only with MAX_ENI below the type's limit"},
		},
		Daemon: []cause.Code{cause.PoolFull},
	},
	{
		Code: "cap/max-pods-low", Title: "max-pods keeps pods from a node that has addresses for them", Severity: Error,
		Shows:      "Pods stay Pending with \"Too many pods\", or fail with OutOfpods, on nodes whose interfaces could address many more: max-pods was computed without prefix delegation, or is set by hand.",
		Required:   []string{"k8s.node", "k8s.pod", "ec2.type"},
		Supporting: []string{"intro.enis", "k8s.evt", "k8s.ds", "host.kubelet"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Confirmed, Confirmed},
		Check:      Check{"Compare max-pods with what the type holds with these settings.", "cnictl capacity type TYPE"},
		Fixes: []Fix{
			{Text: "Raise max-pods of new nodes, up to MAX_PODS (EKS recommends no more than 110 below 30 vCPUs, 250 above): nodeadm's kubelet.config.maxPods, Karpenter's spec.kubelet.maxPods, or --max-pods of the launch template. Kubelet reads it when it starts, so running nodes keep theirs: add new ones.", Command: "cnictl capacity type TYPE"},
			{Text: "Then replace the old nodes.", Command: drain, SideEffect: replaced, Risk: Disruptive},
		},
		Links: []string{issue + "3094", karpenter + "2273", eks + "choosing-instance-type.html"},
	},
}
