package catalogue

// Link prefixes.
const (
	issue      = "https://github.com/aws/amazon-vpc-cni-k8s/issues/"
	upstream   = "https://github.com/aws/amazon-vpc-cni-k8s/blob/master/"
	controller = "https://github.com/aws/amazon-vpc-resource-controller-k8s/issues/"
	policy     = "https://github.com/aws/aws-network-policy-agent/issues/"
	karpenter  = "https://github.com/aws/karpenter-provider-aws/issues/"
	eks        = "https://docs.aws.amazon.com/eks/latest/userguide/"
	ec2        = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/"
	vpc        = "https://docs.aws.amazon.com/vpc/latest/userguide/"
)

// Rolled is the side effect of a changed setting of the DaemonSet; its risk is [Restart].
const Rolled = "Restarts aws-node on every node, as many at a time as maxUnavailable allows. A managed add-on may set the value back: change it there too."

// SetEnv begins the command of the fixes that change settings of the DaemonSet.
const SetEnv = "kubectl -n kube-system set env daemonset/aws-node -c aws-node "

// Commands that several entries share, and their side effects.
const (
	restartOne = "kubectl -n kube-system delete pod -l k8s-app=aws-node --field-selector spec.nodeName=NODE"
	restarted  = "The node cannot start pods for a few seconds; running pods keep their network."
	setEnv     = SetEnv
	rolled     = Rolled
	replaced   = "Evicts every pod on the node; disruption budgets limit how many replicas go at a time."
	drain      = "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data"
	deleteRule = "ip -FAMILY rule del priority PRIORITY FROM_OR_TO ADDRESS table TABLE"
	recreated  = "The pod is replaced; emptyDir volumes are lost, and a pod without a controller does not come back."
	keepMACs   = `mkdir -p /etc/systemd/network/99-default.link.d && printf '[Link]\nMACAddressPolicy=none\n' > /etc/systemd/network/99-default.link.d/aws-cni.conf && reboot`
	settings   = "kubectl -n kube-system get daemonset aws-node -o jsonpath='{.spec.template.spec.containers[*].env}'"
	showNode   = "cnictl node NODE"
	showLog    = "cnictl logs NODE"
	nodeEvents = "kubectl get events -A --field-selector involvedObject.kind=Node,involvedObject.name=NODE"
	podEvents  = "kubectl -n NAMESPACE describe pod POD"
	daemonPods = "kubectl -n kube-system get pods -l k8s-app=aws-node -o wide"
	daemonLog  = "kubectl -n kube-system logs POD -c aws-node --previous"
)

// DeletePod is the command of the fixes that delete a pod.
const DeletePod = "kubectl -n NAMESPACE delete pod POD"

// stalledFixes are the fixes of a container that does not run, for what its log cannot say. Several entries end
// with them; the rules know their order.
var stalledFixes = []Fix{
	{Text: "Give the node a way to the registry: a NAT gateway, or endpoints for ecr.api, ecr.dkr and S3.", Command: "kubectl -n kube-system describe pod POD"},
	{Text: "Let the node's role pull images.", Command: "aws iam attach-role-policy --role-name NODE_ROLE --policy-arn arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly"},
	{Text: "Correct the image: its account, region and tag.", Command: "kubectl -n kube-system get daemonsets -o custom-columns=NAME:.metadata.name,IMAGES:.spec.template.spec.containers[*].image"},
	{Text: "Give the container more memory, or raise or remove its limit; on a node without free memory move what uses it.", Command: "kubectl top pods -A --sort-by memory; kubectl -n kube-system describe pod POD", SideEffect: rolled, Risk: Restart},
	{Text: "Create the Secret, ConfigMap or path that kubelet names.", Command: "kubectl -n kube-system describe pod POD"},
}

// undoRollout follows stalledFixes in the entries about aws-node.
var undoRollout = Fix{Text: "Go back to the release before.", Command: "kubectl -n kube-system rollout undo daemonset aws-node", SideEffect: rolled, Risk: Restart}

// Sources that signatures appear in.
var (
	inLog     = []string{"log.ipamd"}
	inCalls   = []string{"log.ipamd", "metrics", "intro.failures"}
	inSupply  = []string{"log.ipamd", "metrics", "intro.failures", "k8s.evt"}
	inPlugin  = []string{"log.plugin", "k8s.evt", "log.kubelet"}
	inCRI     = []string{"k8s.evt", "log.kubelet", "k8s.node"}
	inStart   = []string{"log.awsnode"}
	inBoth    = []string{"log.ipamd", "log.awsnode"}
	inEvents  = []string{"k8s.evt"}
	inAgent   = []string{"log.np"}
	inProbes  = []string{"k8s.evt", "log.kubelet"}
	inAnyLog  = []string{"log.ipamd", "log.np", "log.awsnode"}
	inIAM     = []string{"log.ipamd", "metrics", "k8s.evt"}
	inPending = []string{"k8s.evt", "k8s.pod"}
)

// DrainNode moves the pods of a node elsewhere, before it is terminated.
var DrainNode = Fix{Text: "Move the pods of the node.", Command: drain, SideEffect: replaced + " Those that find no room stay pending.", Risk: Disruptive}

// Steps that terminate a drained node, by who made it.
var (
	TerminateKarpenters = Fix{Text: "Let Karpenter terminate the instance.", Command: "kubectl delete node NODE",
		SideEffect: "Local volumes are lost. Karpenter starts another node if pods need one, which takes addresses again.", Risk: Destructive}
	TerminateInGroup = Fix{Text: "Terminate the instance, and make its group smaller, so that the group does not replace it.",
		Command:    "aws autoscaling terminate-instance-in-auto-scaling-group --instance-id INSTANCE --should-decrement-desired-capacity",
		SideEffect: "Local volumes are lost. The group refuses below its minimum size.", Risk: Destructive}
	TerminateInstance = Fix{Text: "Terminate the instance.", Command: "aws ec2 terminate-instances --instance-ids INSTANCE",
		SideEffect: "Local volumes are lost. If it is in an Auto Scaling group, the group starts another node, which takes addresses again: use terminate-instance-in-auto-scaling-group.",
		Risk:       Destructive}
)
