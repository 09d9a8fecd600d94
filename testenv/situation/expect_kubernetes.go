package situation

import (
	"slices"

	"cnictl/daemon/cluster"
	"cnictl/doctor/evidence"
)

func (p *population) expectKubernetes(r *evidence.Reading) {
	r.Node = evidence.Read(p.node())
	r.Nodes = evidence.Read([]evidence.KubeNode{})
	pods := slices.Clone(p.pods)
	for i := range pods {
		if pods[i].Ready == nil {
			pods[i].Ready = ref(pods[i].Phase == "Running")
		}
	}
	r.Pods = evidence.Read(pods)
	r.Events = evidence.Read([]evidence.KubeEvent{})
	r.DaemonSet = evidence.Read(p.daemonSet())
	r.DaemonPods = evidence.Read(p.daemonPods())
	r.ENIConfigs = evidence.Read(p.eniConfigs())
	r.CNINode = evidence.Read(p.cniNode())
	r.GroupPolicies = evidence.Read([]evidence.SecurityGroupPolicy{})
	r.Webhooks = evidence.Read([]evidence.Webhook{
		{Name: "vpc-resource-mutating-webhook", FailurePolicy: "Ignore", Reachable: ref(true)},
		{Name: "vpc-resource-validating-webhook", FailurePolicy: "Ignore", Reachable: ref(true)},
	})
	r.ConfigMap = evidence.Read[map[string]string](nil)
	r.KubeProxy = evidence.Read(evidence.KubeProxy{Mode: "iptables", Pods: []evidence.ProxyPod{
		{Pod: "kube-system/kube-proxy-1", Node: p.Node, Phase: "Running", Ready: ref(true)},
	}})
	const controller = "kube-system/eks-vpc-resource-controller-role"
	r.RBAC = evidence.Read(evidence.RBAC{Roles: []string{controller}, Bindings: []string{controller + "binding"}, Denied: []string{}, Reviewed: evidence.ReviewedRights})
	r.ServiceAccount = evidence.Read(evidence.ServiceAccount{Name: "aws-node", Annotations: map[string]string{}})
	r.NetworkPolicies = evidence.Read(evidence.NetworkPolicies{CRDs: ref(true), Endpoints: []evidence.PolicyEndpoint{}})
	r.Probes = evidence.Read([]evidence.Probe{})
}

const labelHostname = "kubernetes.io/hostname"

func (p *population) node() evidence.KubeNode {
	n := evidence.KubeNode{
		Name: p.Node, InstanceType: p.InstanceType, Zone: p.Zone, Instance: p.Instance,
		Capacity: evidence.NodeResources{Pods: p.MaxPods}, Allocatable: evidence.NodeResources{Pods: p.MaxPods},
		Taints: []evidence.Taint{}, Conditions: []evidence.Condition{{Type: "Ready", Status: "True", Reason: "KubeletReady", Since: p.UpSince}},
		Labels: map[string]string{
			labelHostname: p.Node, "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": p.InstanceType, "topology.kubernetes.io/zone": p.Zone,
		},
		Annotations: map[string]string{}, KubeletVersion: kubeletVersion, OSImage: p.OS, Kernel: p.Kernel, CreatedAt: p.UpSince,
	}
	if t, ok := p.instance(); ok && p.trunk() != nil {
		n.Capacity.PodENI, n.Allocatable.PodENI = &t.BranchENIs, &t.BranchENIs
	}
	return n
}

func (p *population) daemonSet() *evidence.DaemonSet {
	ds := &evidence.DaemonSet{
		Containers: []string{"aws-node"}, InitContainers: []string{"aws-vpc-cni-init"},
		Images: map[string]string{"aws-node": p.image() + ":" + p.Version, "aws-vpc-cni-init": p.image() + "-init:" + p.Version},
		Env:    p.containerEnv(), Args: map[string][]string{},
		Selector: map[string]string{"k8s-app": "aws-node"}, MaxUnavailable: "10%", Ports: []string{"metrics"},
		PodLabels:  map[string]string{"app.kubernetes.io/name": "aws-node", "app.kubernetes.io/instance": releaseName, "k8s-app": "aws-node"},
		Volumes:    []string{"cni-bin-dir", "cni-net-dir", "log-dir", "run-dir", "xtables-lock"},
		Pods:       evidence.Rollout{Desired: ref(1), Updated: ref(1), Ready: ref(1)},
		Mounts:     map[string][]string{"aws-node": {"/opt/cni/bin", "/etc/cni/net.d", "/var/log/aws-routed-eni", "/var/run/aws-node", "/run/xtables.lock"}, "aws-vpc-cni-init": {"/opt/cni/bin"}},
		CPURequest: "25m",
		Security:   map[string][]string{"aws-node": {"capabilities.add=NET_ADMIN", "capabilities.add=NET_RAW"}, "aws-vpc-cni-init": {"privileged=true"}},
		Affinity:   []string{"eks.amazonaws.com/compute-type NotIn fargate,hybrid,auto", "kubernetes.io/arch In amd64,arm64", "kubernetes.io/os In linux"},
	}
	addr := ":50051"
	if p.onSocket() {
		addr = "unix:///var/run/aws-node/ipamd.sock"
	}
	probe := evidence.HealthProbe{
		Command: []string{"/app/grpc-health-probe", "-addr=" + addr, "-connect-timeout=5s", "-rpc-timeout=5s"}, TimeoutSeconds: ref(10), PeriodSeconds: ref(10), FailureThreshold: ref(3),
	}
	ds.Liveness, ds.Readiness = probe, probe
	ds.Liveness.InitialDelaySeconds, ds.Readiness.InitialDelaySeconds = ref(60), ref(1)
	if p.AgentVersion != "" {
		ds.Containers, ds.Volumes = append(ds.Containers, "aws-eks-nodeagent"), append(ds.Volumes, "bpf-pin-path")
		ds.Images["aws-eks-nodeagent"] = "aws-network-policy-agent:" + p.AgentVersion
		ds.Args["aws-eks-nodeagent"] = []string{"--enable-ipv6=" + p.settingText(p.IPFamily == "ipv6"), "--enable-network-policy=false", "--enable-cloudwatch-logs=false", "--metrics-bind-addr=:8162", "--health-probe-bind-addr=:8163"}
		ds.Security["aws-eks-nodeagent"] = []string{"capabilities.add=NET_ADMIN", "privileged=true"}
		ds.Mounts["aws-eks-nodeagent"] = []string{"/opt/cni/bin", "/sys/fs/bpf", "/var/log/aws-routed-eni", "/var/run/aws-node"}
	}
	return ds
}

// image returns the daemon's image: ours from deploy/aws-node.yaml, or upstream's.
func (p *population) image() string {
	if p.Daemon == "ours" {
		return "registry.invalid/cnictl/aws-vpc-cni"
	}
	return "amazon-k8s-cni"
}

func (p *population) settingText(on bool) string {
	if on {
		return "true"
	}
	return "false"
}

func (p *population) daemonPods() []evidence.DaemonPod {
	pod := evidence.DaemonPod{Pod: "kube-system/aws-node-1", Node: p.Node, Phase: "Running"}
	add := func(name string, init bool, state, reason string) {
		pod.Containers = append(pod.Containers, evidence.DaemonContainer{Name: name, Init: init, Ready: ref(true), Restarts: ref(0), RestartsLastHour: ref(0), State: state, Reason: reason})
	}
	add("aws-vpc-cni-init", true, "terminated", "Completed")
	add("aws-node", false, "running", "")
	if p.AgentVersion != "" {
		add("aws-eks-nodeagent", false, "running", "")
	}
	return []evidence.DaemonPod{pod}
}

func (p *population) eniConfigs() []evidence.ENIConfig {
	c := p.settings()
	if !c.CustomNetworking {
		return []evidence.ENIConfig{}
	}
	subnet := p.Subnets[0].ID
	if len(p.ENIs) > 1 {
		subnet = p.ENIs[1].Subnet
	}
	return []evidence.ENIConfig{{Name: p.eniConfigName(), Subnet: subnet, SecurityGroups: []string{defaultGroup}, Valid: true}}
}

// eniConfigName returns the name of the ENIConfig that the node maps to.
func (p *population) eniConfigName() string {
	c, n := p.settings(), p.node()
	return cluster.ENIConfigName(cluster.Node{Labels: n.Labels, Annotations: n.Annotations}, c.ENIConfigAnnotation, c.ENIConfigLabel)
}

func (p *population) cniNode() *evidence.CNINode {
	c, n := p.settings(), &evidence.CNINode{Features: []evidence.Feature{}}
	if !c.PodENI {
		return n
	}
	n.Features = append(n.Features, evidence.Feature{Name: cluster.FeatureSecurityGroupsForPods})
	if c.CustomNetworking {
		n.Features = append(n.Features, evidence.Feature{Name: cluster.FeatureCustomNetworking, Value: p.eniConfigs()[0].Name})
	}
	return n
}
