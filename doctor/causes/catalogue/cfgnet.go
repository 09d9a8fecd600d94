package catalogue

import "cnictl/daemon/api/cause"

var cfgnetCauses = []Entry{
	{
		Code: "cfgnet/eniconfig-missing", Title: "the node's ENIConfig does not exist", Severity: Critical,
		Shows:      "Custom networking is on and the node is NotReady (before v1.13.0: Ready, with an empty pool). The name comes from the node's label vpc.amazonaws.com/externalEniConfig, then the configured annotation, then the configured label, else it is \"default\".",
		Required:   []string{"k8s.node", "k8s.ds", "k8s.eniconfig"},
		Supporting: []string{"log.ipamd", "intro.eniconfig", "k8s.evt", "intro.failures"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Probable, Confirmed},
		Check:      Check{"Compare the name that the node asks for with the ENIConfigs that exist. The label failure-domain.beta.kubernetes.io/zone is gone on new clusters.", "kubectl get eniconfigs.crd.k8s.amazonaws.com; kubectl get node NODE --show-labels"},
		Fixes: []Fix{
			{Text: "Create the ENIConfig NAME, with a subnet of the node's zone.", Command: `printf 'apiVersion: crd.k8s.amazonaws.com/v1alpha1\nkind: ENIConfig\nmetadata: {name: NAME}\nspec: {subnet: SUBNET_OF_ZONE, securityGroups: [GROUP]}\n' | kubectl apply -f -`, SideEffect: "Every node that asks for that name uses it."},
			{Text: "Or name the ENIConfigs by zone.", Command: setEnv + "ENI_CONFIG_LABEL_DEF=topology.kubernetes.io/zone", SideEffect: rolled, Risk: Restart},
			{Text: "Restart aws-node on the node afterwards.", Command: restartOne, SideEffect: restarted, Risk: Restart},
			{Text: "Choose the ENIConfig by the node's zone: there is one of that name.", Command: setEnv + "ENI_CONFIG_LABEL_DEF=topology.kubernetes.io/zone", SideEffect: rolled, Risk: Restart},
		},
		Links:    []string{issue + "2683", issue + "884", eks + "cni-custom-network.html"},
		Explains: []string{"boot/ipamd-down", "boot/probe-timeout", "ip/warm-pool-lag"},
		Signatures: []Signature{
			{Text: "error while retrieving eniconfig:", Where: inLog},
			{Text: "eniconfig: eniconfig is not available", Where: inLog},
			{Text: "Failed to attach any ENIs for custom networking", Where: inBoth},
			{Text: "EniConfigNameNotFound", Where: inEvents},
		},
		Daemon: []cause.Code{cause.ENIConfigMissing},
	},
	{
		Code: "cfgnet/eniconfig-invalid", Title: "the ENIConfig has the wrong zone, subnet, VPC or form", Severity: Critical,
		Shows:      "The ENIConfig exists, but its subnet is in another zone or VPC or is gone, or its security groups are not a list. EC2 refuses the interface, or the setting is ignored.",
		Required:   []string{"k8s.eniconfig", "k8s.node", "ec2.subnet"},
		Supporting: []string{"log.ipamd", "ec2.sg", "k8s.ds", "intro.failures"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Probable, Probable},
		Check:      Check{"Compare the zone and VPC of the ENIConfig's subnet with the node's.", "kubectl get eniconfigs.crd.k8s.amazonaws.com NAME -o yaml; aws ec2 describe-subnets --subnet-ids SUBNET --query 'Subnets[].[AvailabilityZone,VpcId]' --output text"},
		Fixes: []Fix{
			{Text: "Correct the ENIConfig: a subnet in the node's zone, security groups in the same VPC, as a list.", Command: "kubectl edit eniconfigs.crd.k8s.amazonaws.com NAME", SideEffect: "Interfaces created from now on use it; attached ones stay as they are."},
		},
		Links:    []string{issue + "2416", issue + "2969", eks + "cni-custom-network.html"},
		Explains: []string{"eni/ec2-rejected", "boot/ipamd-down", "boot/probe-timeout", "ip/warm-pool-lag"},
		Signatures: []Signature{
			{Text: "Failed to attach any ENIs for custom networking", Where: inBoth, Note: "when the ENIConfig exists"},
			{Text: "InvalidSubnetID.NotFound", Where: inCalls, Note: "under custom networking"},
			{Text: "InvalidSecurityGroupID.NotFound", Where: inCalls, Note: "under custom networking"},
		},
		Daemon: []cause.Code{cause.ENIConfigMissing},
	},
	{
		Code: "cfgnet/changed-live", Title: "custom networking or an ENIConfig changed under running nodes", Severity: Warning,
		Shows:      "A node has interfaces in a subnet other than its ENIConfig's, or pods on its primary interface although custom networking is on.",
		Required:   []string{"intro.enis", "k8s.eniconfig", "k8s.ds"},
		Supporting: []string{"ec2.eni", "intro.eniconfig", "k8s.node"},
		Ceiling:    Ceilings{Confirmed, Confirmed, Confirmed, None},
		Check:      Check{"Check the subnets of the secondary interfaces. Ignore the primary interface: its subnet always differs.", "cnictl node enis NODE"},
		Fixes: []Fix{
			{Text: "Replace the nodes that are older than the change.", Command: drain, SideEffect: replaced, Risk: Disruptive},
		},
		Links:    []string{issue + "514", eks + "cni-custom-network.html"},
		Explains: []string{"boot/ipamd-down", "ip/warm-pool-lag"},
	},
}
