package catalogue

// Parts of the fixes on the pages that rules look for, or that others recommend too.
const (
	SetEnv    = "kubectl -n kube-system set env daemonset/aws-node -c aws-node "
	DeletePod = "kubectl -n NAMESPACE delete pod POD"

	// Rolled is the side effect of a changed setting of the DaemonSet; its risk is [Restart].
	Rolled = "Restarts aws-node on every node, as many at a time as maxUnavailable allows. A managed add-on may set the value back: change it there too."
)

// Commands of checks.
const (
	settings   = "kubectl -n kube-system get daemonset aws-node -o jsonpath='{.spec.template.spec.containers[*].env}'"
	showNode   = "cnictl node NODE"
	showLog    = "cnictl logs NODE"
	nodeEvents = "kubectl get events -A --field-selector involvedObject.kind=Node,involvedObject.name=NODE"
	podEvents  = "kubectl -n NAMESPACE describe pod POD"
	daemonPods = "kubectl -n kube-system get pods -l k8s-app=aws-node -o wide"
)

// Sources that signatures of symptoms appear in.
var (
	inLog    = []string{"log.ipamd"}
	inPlugin = []string{"log.plugin", "k8s.evt", "log.kubelet"}
	inEvents = []string{"k8s.evt"}
)

// DrainNode moves the pods of a node elsewhere, before it is terminated.
var DrainNode = Fix{
	Text: "Move the pods of the node.", Command: "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data",
	SideEffect: "Evicts every pod on the node; disruption budgets limit how many replicas go at a time. Those that find no room stay pending.",
	Risk:       Disruptive,
}

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
