package fleetsim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	kubequantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
)

const systemNamespace = "kube-system"

// exact returns the value that a field selector requires for a field, "" for any.
func exact(f fields.Selector, name string) string {
	if f == nil {
		return ""
	}
	value, _ := f.RequiresExactMatch(name)
	return value
}

func (s *Sim) present(n *node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !n.gone
}

// chosen returns the current nodes, or the one with the given name.
func (s *Sim) chosen(name string) []*node {
	all := s.nodes
	if name != "" {
		n, ok := s.byName[name]
		if !ok {
			return nil
		}
		all = []*node{n}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*node, 0, len(all))
	for _, n := range all {
		if !n.gone {
			out = append(out, n)
		}
	}
	return out
}

func nodeEntries(s *Sim, _ string, f fields.Selector) []entry {
	var out []entry
	for _, n := range s.chosen(exact(f, "metadata.name")) {
		out = append(out, entry{name: n.name, build: func() runtime.Object { return n.object() }})
	}
	return out
}

// object returns the current Node.
func (n *node) object() *corev1.Node {
	n.sim.mu.Lock()
	defer n.sim.mu.Unlock()
	return n.objectLocked()
}

func (n *node) objectLocked() *corev1.Node {
	os, arch, image, runtimeName := "linux", "amd64", "Amazon Linux 2023.9.20260811", "containerd://2.1.5"
	if n.has(Windows) {
		os, image = "windows", "Windows Server 2022 Datacenter"
	}
	if n.profile.limits.Arch == "arm64" {
		arch = "arm64"
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: *kubequantity.NewQuantity(int64(n.profile.limits.VCPUs), kubequantity.DecimalSI), corev1.ResourceMemory: *kubequantity.NewQuantity(int64(n.profile.limits.MemoryMiB)<<20, kubequantity.BinarySI),
		corev1.ResourcePods: *kubequantity.NewQuantity(int64(n.profile.maxPods), kubequantity.DecimalSI),
	}
	if n.profile.podENI && n.hasPod() {
		capacity[podENIName] = *kubequantity.NewQuantity(int64(n.profile.limits.BranchENIs), kubequantity.DecimalSI)
	}
	labels := map[string]string{
		corev1.LabelHostname: n.name, corev1.LabelOSStable: os, corev1.LabelArchStable: arch,
		corev1.LabelInstanceTypeStable: n.profile.instance, corev1.LabelTopologyRegion: region, corev1.LabelTopologyZone: n.zone,
		"topology.k8s.aws/zone-id": "euw1-az" + strconv.Itoa(n.index%len(zones)+1), "eks.amazonaws.com/nodegroup": n.profile.group,
		"eks.amazonaws.com/capacityType": "ON_DEMAND",
	}
	if n.has(Fargate) {
		delete(labels, "eks.amazonaws.com/nodegroup")
		labels["eks.amazonaws.com/compute-type"] = "fargate"
		capacity[corev1.ResourcePods] = *kubequantity.NewQuantity(1, kubequantity.DecimalSI)
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status", LastTransitionTime: metav1.NewTime(n.since.Truncate(time.Second))}
	if n.down {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
	}
	o := &corev1.Node{
		TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: n.name, UID: n.uid("node"), ResourceVersion: strconv.FormatUint(n.version, 10),
			CreationTimestamp: metav1.NewTime(n.created), Labels: labels,
			Annotations: map[string]string{
				"node.alpha.kubernetes.io/ttl": "15", "volumes.kubernetes.io/controller-managed-attach-detach": "true",
				"csi.volume.kubernetes.io/nodeid": `{"ebs.csi.aws.com":"` + n.instanceID + `"}`,
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", Subresource: "status",
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:allocatable":{"f:pods":{}},"f:capacity":{"f:pods":{}},"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:lastHeartbeatTime":{},"f:status":{}}},"f:images":{}}}`)},
			}},
		},
		Spec: corev1.NodeSpec{ProviderID: "aws:///" + n.zone + "/" + n.instanceID, Unschedulable: n.cordoned},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"}, ready,
			},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.ip.String()}, {Type: corev1.NodeInternalDNS, Address: n.name}, {Type: corev1.NodeHostName, Address: n.name}},
			NodeInfo: corev1.NodeSystemInfo{
				KernelVersion: "6.12.41-61.102.amzn2023.x86_64", OSImage: image, ContainerRuntimeVersion: runtimeName, KubeletVersion: gitVersion,
				OperatingSystem: os, Architecture: arch,
			},
		},
	}
	for _, name := range []string{n.image(), "602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/kube-proxy:v1.35.4-minimal-eksbuild.1", "602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/coredns:v1.12.4-eksbuild.1"} {
		o.Status.Images = append(o.Status.Images, corev1.ContainerImage{Names: []string{name}, SizeBytes: int64(40_000_000 + len(name))})
	}
	if n.cordoned {
		o.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	}
	return o
}

// uid returns an object's UID, which changes each time the node returns.
func (n *node) uid(of string) types.UID {
	return types.UID(uid(n.sim.hash(n.index, of+strconv.Itoa(n.generation)), n.sim.hash(n.index, of)))
}

// daemonPod returns the current aws-node pod.
func (n *node) daemonPod() *corev1.Pod {
	n.sim.mu.Lock()
	defer n.sim.mu.Unlock()
	return n.daemonPodLocked()
}

func (n *node) daemonPodLocked() *corev1.Pod {
	ready := !n.down && !n.has(NotReady)
	phase, state := corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(n.since)}}
	if n.has(NotReady) {
		phase = corev1.PodPending
		state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}}
	}
	status := corev1.ConditionTrue
	if !ready {
		status = corev1.ConditionFalse
	}
	env := []corev1.EnvVar{{Name: "AWS_VPC_K8S_CNI_LOGLEVEL", Value: "INFO"}}
	for _, s := range n.settings() {
		if !s.standard {
			env = append(env, corev1.EnvVar{Name: s.name, Value: s.value})
		}
	}
	if n.has(UnixSocket) {
		env = append(env, corev1.EnvVar{Name: "INTROSPECTION_BIND_ADDRESS", Value: "unix:/var/run/aws-node/introspection.sock"})
	}
	yes := true
	restarts := int32(n.restarts)
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: n.podName, GenerateName: "aws-node-", Namespace: systemNamespace, UID: n.uid("pod"), ResourceVersion: strconv.FormatUint(n.podVersion, 10),
			CreationTimestamp: metav1.NewTime(n.created.Add(20 * time.Second)),
			Labels: map[string]string{
				"k8s-app": "aws-node", "app.kubernetes.io/name": "aws-node", "app.kubernetes.io/instance": "aws-vpc-cni",
				"controller-revision-hash": "6d9f7c5b8", "pod-template-generation": "1",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "aws-node", UID: "5b3f0e8c-9b4e-4f57-8d0a-2f1f0b6f0a11", Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName: n.name, HostNetwork: true, ServiceAccountName: "aws-node", PriorityClassName: "system-node-critical", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{
				Name: "aws-node", Image: n.image(), Env: env,
				Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: MetricsPort, HostPort: MetricsPort, Protocol: corev1.ProtocolTCP}},
			}},
		},
		Status: corev1.PodStatus{
			Phase: phase, HostIP: n.ip.String(), PodIP: n.ip.String(), PodIPs: []corev1.PodIP{{IP: n.ip.String()}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "aws-node", Ready: ready, RestartCount: restarts, Image: n.image(), Started: &ready, State: state,
			}},
		},
	}
}

func podEntries(s *Sim, namespace string, f fields.Selector) []entry {
	var out []entry
	nodes := s.chosen(exact(f, "spec.nodeName"))
	name := exact(f, "metadata.name")
	if namespace == "" || namespace == systemNamespace {
		daemons := nodes
		if name != "" {
			daemons = slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return n.podName != name })
		}
		for _, n := range daemons {
			if n.hasPod() {
				out = append(out, entry{namespace: systemNamespace, name: n.podName, build: func() runtime.Object { return n.daemonPod() }})
			}
		}
	}
	if namespace != systemNamespace {
		for _, n := range nodes {
			out = append(out, n.podEntries(namespace)...)
		}
	}
	sortEntries(out)
	return out
}

func (s *Sim) age(since metav1.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(s.now().Sub(since.Time))
}

func nodeCells(s *Sim, o runtime.Object) []any {
	n := o.(*corev1.Node)
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = map[corev1.ConditionStatus]string{corev1.ConditionTrue: "Ready", corev1.ConditionFalse: "NotReady"}[c.Status]
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	info := n.Status.NodeInfo
	return []any{n.Name, status, "<none>", s.age(n.CreationTimestamp), info.KubeletVersion, n.Status.Addresses[0].Address, "<none>", info.OSImage, info.KernelVersion, info.ContainerRuntimeVersion}
}

func podCells(s *Sim, o runtime.Object) []any {
	p := o.(*corev1.Pod)
	ready, restarts, status := 0, 0, string(p.Status.Phase)
	for _, c := range p.Status.ContainerStatuses {
		if c.Ready {
			ready++
		}
		restarts += int(c.RestartCount)
		if c.State.Waiting != nil {
			status = c.State.Waiting.Reason
		}
	}
	ip := p.Status.PodIP
	if ip == "" {
		ip = "<none>"
	}
	return []any{p.Name, fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers)), status, strconv.Itoa(restarts), s.age(p.CreationTimestamp), ip, p.Spec.NodeName, "<none>", "<none>"}
}

func namespaceEntries(s *Sim, _ string, _ fields.Selector) []entry {
	var out []entry
	for _, name := range namespaces() {
		out = append(out, entry{name: name, build: func() runtime.Object {
			return &corev1.Namespace{
				TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
				ObjectMeta: s.fixed("", name, nil), Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
				Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
			}
		}})
	}
	return out
}

// fixed returns the metadata of an object that exists from the start and never changes.
func (s *Sim) fixed(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: labels, ResourceVersion: strconv.Itoa(firstVersion - 1),
		UID: types.UID(uid(s.hash(-1, namespace+"/"+name), s.hash(-2, name))), CreationTimestamp: metav1.NewTime(s.epoch.Add(-30 * 24 * time.Hour).Truncate(time.Second)),
	}
}

func namespaceCells(s *Sim, o runtime.Object) []any {
	n := o.(*corev1.Namespace)
	return []any{n.Name, string(n.Status.Phase), s.age(n.CreationTimestamp)}
}

func configMapEntries(s *Sim, namespace string, _ fields.Selector) []entry {
	if namespace != "" && namespace != systemNamespace {
		return nil
	}
	return []entry{{namespace: systemNamespace, name: "amazon-vpc-cni", build: func() runtime.Object {
		return &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: s.fixed(systemNamespace, "amazon-vpc-cni", map[string]string{"k8s-app": "aws-node"}),
			Data: map[string]string{"branch-eni-cooldown": "60", "enable-windows-ipam": "false", "enable-network-policy-controller": "true"},
		}
	}}}
}

func configMapCells(s *Sim, o runtime.Object) []any {
	c := o.(*corev1.ConfigMap)
	return []any{c.Name, len(c.Data), s.age(c.CreationTimestamp)}
}

func daemonSetEntries(s *Sim, namespace string, _ fields.Selector) []entry {
	if namespace != "" && namespace != systemNamespace {
		return nil
	}
	return []entry{{namespace: systemNamespace, name: "aws-node", build: func() runtime.Object { return s.daemonSet() }}}
}

func (s *Sim) daemonSet() *appsv1.DaemonSet {
	var wanted, ready int32
	s.mu.Lock()
	for _, n := range s.nodes {
		if n.hasPod() && !n.gone {
			wanted++
			if !n.down && !n.has(NotReady) {
				ready++
			}
		}
	}
	s.mu.Unlock()
	d := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{Kind: "DaemonSet", APIVersion: "apps/v1"}, ObjectMeta: s.fixed(systemNamespace, "aws-node", map[string]string{"k8s-app": "aws-node", "app.kubernetes.io/name": "aws-node"})}
	d.UID = "5b3f0e8c-9b4e-4f57-8d0a-2f1f0b6f0a11"
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "aws-node"}}
	d.Spec.Template.Labels = map[string]string{"k8s-app": "aws-node"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{ // without variables: the groups have settings of their own
		Name: "aws-node", Image: "602401143452.dkr.ecr." + region + ".amazonaws.com/amazon-k8s-cni:" + daemonVersion,
	}}
	d.Status = appsv1.DaemonSetStatus{DesiredNumberScheduled: wanted, CurrentNumberScheduled: wanted, NumberReady: ready, UpdatedNumberScheduled: wanted, NumberAvailable: ready, NumberUnavailable: wanted - ready}
	return d
}

func daemonSetCells(s *Sim, o runtime.Object) []any {
	d := o.(*appsv1.DaemonSet)
	st, c := d.Status, d.Spec.Template.Spec.Containers[0]
	return []any{d.Name, st.DesiredNumberScheduled, st.CurrentNumberScheduled, st.NumberReady, st.UpdatedNumberScheduled, st.NumberAvailable, "<none>", s.age(d.CreationTimestamp), c.Name, c.Image, "k8s-app=aws-node"}
}

// custom returns an object of a CustomResourceDefinition.
func (s *Sim) custom(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	m := s.fixed(namespace, name, nil)
	o.SetName(m.Name)
	o.SetNamespace(m.Namespace)
	o.SetUID(m.UID)
	o.SetResourceVersion(m.ResourceVersion)
	o.SetCreationTimestamp(m.CreationTimestamp)
	return o
}

func nameAgeCells(s *Sim, o runtime.Object) []any {
	m, err := meta.Accessor(o)
	if err != nil {
		return []any{"", ""}
	}
	return []any{m.GetName(), s.age(m.GetCreationTimestamp())}
}

func eniConfigEntries(s *Sim, _ string, _ fields.Selector) []entry {
	var out []entry
	for i, zone := range zones {
		out = append(out, entry{name: zone, build: func() runtime.Object {
			return s.custom("crd.k8s.amazonaws.com/v1alpha1", "ENIConfig", "", zone, map[string]any{
				"subnet": fmt.Sprintf("subnet-0%016x", 0xc057000+i), "securityGroups": []any{"sg-0123456789abcdef0"},
			})
		}})
	}
	return out
}

func policyEntries(s *Sim, namespace string, _ fields.Selector) []entry {
	if namespace != "" && namespace != "payments" {
		return nil
	}
	return []entry{{namespace: "payments", name: "ledger", build: func() runtime.Object {
		return s.custom("vpcresources.k8s.aws/v1beta1", "SecurityGroupPolicy", "payments", "ledger", map[string]any{
			"podSelector": map[string]any{"matchLabels": map[string]any{branchLabel: "true"}}, "securityGroups": map[string]any{"groupIds": []any{"sg-0fedcba9876543210"}},
		})
	}}}
}

func cniNodeEntries(s *Sim, _ string, f fields.Selector) []entry {
	var out []entry
	for _, n := range s.chosen(exact(f, "metadata.name")) {
		if n.profile.podENI && n.hasPod() {
			out = append(out, entry{name: n.name, build: func() runtime.Object {
				return s.custom("vpcresources.k8s.aws/v1alpha1", "CNINode", "", n.name, map[string]any{"features": []any{map[string]any{"name": "SecurityGroupsForPods"}}})
			}})
		}
	}
	return out
}

func cniNodeCells(_ *Sim, o runtime.Object) []any {
	u := o.(*unstructured.Unstructured)
	features, _, _ := unstructured.NestedSlice(u.Object, "spec", "features")
	return []any{u.GetName(), fmt.Sprint(features...)}
}

func eventCells(s *Sim, o runtime.Object) []any {
	e := o.(*corev1.Event)
	object := strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
	return []any{s.age(e.LastTimestamp), e.Type, e.Reason, object, "", e.Source.Component + ", " + e.Source.Host, strings.TrimSpace(e.Message), s.age(e.FirstTimestamp), int64(e.Count), e.Name}
}
