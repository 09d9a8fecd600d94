package collect

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/deploy"
	"cnictl/doctor/collect/watched"
	"cnictl/doctor/evidence"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

// install creates an object until the test ends.
func install(t *testing.T, s *kubeapi.Server, k kube.Kind, o *unstructured.Unstructured) {
	t.Helper()
	o.SetAPIVersion(schema.GroupVersion{Group: k.Group, Version: k.Version}.String())
	all := s.Objects().Resource(schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Plural})
	var err error
	if o.GetNamespace() == "" {
		_, err = all.Create(t.Context(), o, metav1.CreateOptions{})
	} else {
		_, err = all.Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

func object(kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: fields}
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// grant grants a user the roles of files of deploy/rbac.
func grant(t *testing.T, s *kubeapi.Server, user string, files ...string) {
	t.Helper()
	const group = "rbac.authorization.k8s.io"
	for _, file := range files {
		objects, err := deploy.RBAC(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, role := range objects {
			kind := role.GetKind()
			role.SetName(user + "-" + file)
			install(t, s, kube.Kind{Group: group, Version: "v1", Plural: strings.ToLower(kind) + "s"}, role)
			install(t, s, kube.Kind{Group: group, Version: "v1", Plural: strings.ToLower(kind) + "bindings"}, object(kind+"Binding", role.GetNamespace(), role.GetName(), map[string]any{
				"roleRef": map[string]any{"apiGroup": group, "kind": kind, "name": role.GetName()}, "subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": user}},
			}))
		}
	}
}

// populate fills a cluster with what the doctor reads.
func populate(t *testing.T, s *kubeapi.Server) {
	t.Helper()
	for _, name := range []string{"node-a", "node-b"} {
		s.CreateNode(t, name, func(n *corev1.Node) {
			n.Labels["node.kubernetes.io/instance-type"], n.Labels["topology.kubernetes.io/zone"] = "m5.large", "eu-west-1a"
			n.Spec.ProviderID = "aws:///eu-west-1a/i-0123456789abcdef0"
		})
		daemon := s.CreatePod(t, kube.DefaultNamespace, "aws-node-"+name, name, func(p *corev1.Pod) {
			p.Labels = map[string]string{"k8s-app": evidence.ContainerNode}
			p.Spec.HostNetwork = true
			p.Spec.Containers[0].Name = evidence.ContainerNode
		})
		s.SetPodStatus(t, daemon, func(st *corev1.PodStatus) {
			st.Phase = corev1.PodRunning
			st.ContainerStatuses = []corev1.ContainerStatus{{Name: evidence.ContainerNode, Ready: true, RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		})
		s.CreatePod(t, "default", "app-"+name, name)
	}
	s.CreatePod(t, "default", "nowhere", "")
	s.CreatePod(t, kube.DefaultNamespace, "kube-proxy-a", "node-a", func(p *corev1.Pod) { p.Labels = map[string]string{"k8s-app": "kube-proxy"} })
	manifest, err := deploy.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range manifest {
		if o.GetKind() == "DaemonSet" {
			install(t, s, kube.KindDaemonSets, o)
		}
	}
	install(t, s, kube.KindENIConfigs, object("ENIConfig", "", "eu-west-1a", map[string]any{"spec": map[string]any{"subnet": "subnet-0123456789abcdef0", "securityGroups": []any{"sg-0123456789abcdef0"}}}))
	install(t, s, kube.KindCNINodes, object("CNINode", "", "node-a", map[string]any{"spec": map[string]any{"features": []any{map[string]any{"name": "SecurityGroupsForPods"}}}}))
	install(t, s, kube.KindGroupPolicies, object("SecurityGroupPolicy", "default", "p", map[string]any{"spec": map[string]any{
		"podSelector": map[string]any{}, "securityGroups": map[string]any{"groupIds": []any{"sg-0123456789abcdef0"}},
	}}))
	install(t, s, kube.KindMutating, object("MutatingWebhookConfiguration", "", "vpc-resource-mutating-webhook", map[string]any{"webhooks": []any{map[string]any{
		"name": "m.vpc.k8s.aws", "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/"},
	}}}))
	config := map[string]any{"data": map[string]any{"enable-network-policy-controller": "true"}}
	install(t, s, kube.KindConfigMaps, object("ConfigMap", kube.DefaultNamespace, "amazon-vpc-cni", config))
	install(t, s, kube.KindConfigMaps, object("ConfigMap", kube.DefaultNamespace, "kube-proxy-config", map[string]any{"data": map[string]any{"config": "mode: \"ipvs\"\n"}}))
	install(t, s, kube.KindRoles, object("Role", kube.DefaultNamespace, "eks-vpc-resource-controller-role", map[string]any{}))
	install(t, s, kube.KindConfigMaps, object("ConfigMap", kube.DefaultNamespace, evidence.ContainerNode, map[string]any{"data": map[string]any{"10-aws.conflist": `{"name": "aws-cni", "plugins": [{"type": "aws-cni"}]}`}}))
	install(t, s, kube.KindQuotas, object("ResourceQuota", kube.DefaultNamespace, "critical", map[string]any{"spec": map[string]any{
		"hard": map[string]any{"pods": "100"}, "scopeSelector": map[string]any{"matchExpressions": []any{map[string]any{"scopeName": "PriorityClass", "operator": "In", "values": []any{"system-node-critical"}}}},
	}}))
	install(t, s, kube.KindValidating, object("ValidatingWebhookConfiguration", "", "policy", map[string]any{"webhooks": []any{map[string]any{
		"name": "validate.policy.example", "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
		"rules":        []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"DELETE"}, "resources": []any{"pods"}}},
		"clientConfig": map[string]any{"service": map[string]any{"namespace": "policy", "name": "webhook"}},
	}}}))
	install(t, s, kube.KindValidating, object("ValidatingWebhookConfiguration", "", "closed", map[string]any{"webhooks": []any{map[string]any{
		"name": "closed.policy.example", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
		"rules":        []any{map[string]any{"apiGroups": []any{"apps"}, "apiVersions": []any{"v1"}, "operations": []any{"UPDATE"}, "resources": []any{"daemonsets"}}},
		"clientConfig": map[string]any{"service": map[string]any{"namespace": "default", "name": "policy"}},
	}}}))
	install(t, s, kube.KindServices, object("Service", "default", "policy", map[string]any{"spec": map[string]any{"selector": map[string]any{"app": "policy"}, "ports": []any{map[string]any{"port": int64(443)}}}}))
	s.CreatePod(t, "default", "policy", "", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "policy"} })
	for name, about := range map[string]map[string]any{
		"one": {"kind": "Pod", "namespace": "default", "name": "app-node-a"}, "two": {"kind": "Pod", "namespace": "default", "name": "nowhere"},
		"three": {"kind": "Pod", "namespace": "default", "name": "gone"},
	} {
		install(t, s, kube.KindEvents, object("Event", "default", name, map[string]any{
			"involvedObject": about, "type": "Warning", "reason": "FailedCreatePodSandBox", "message": "m", "lastTimestamp": time.Now().UTC().Format(time.RFC3339),
		}))
	}
}

// k8s returns the reasons why sources of Kubernetes are missing.
func k8s(r *evidence.Reading) map[string]string {
	out := r.Missing()
	maps.DeleteFunc(out, func(id, _ string) bool { return !strings.HasPrefix(id, "k8s.") })
	return out
}

// TestCollect_Rights: with any subset of the roles, everything permitted is read, and the rest is
// missing as forbidden.
func TestCollect_Rights(t *testing.T) {
	t.Parallel()
	s := kubeapi.Start(t)
	populate(t, s)
	for user, row := range map[string]struct {
		files     []string
		forbidden []string
	}{
		"full":    {files: []string{"cnictl", "cnictl-doctor"}},
		"minimal": {files: []string{"cnictl"}, forbidden: []string{"k8s.admission", "k8s.conflist", "k8s.monitors", "k8s.np", "k8s.ns", "k8s.objects", "k8s.rbac", "k8s.sa", "k8s.wh"}},
		"none": {forbidden: []string{
			"k8s.admission", "k8s.cm", "k8s.cninode", "k8s.conflist", "k8s.ds", "k8s.ds.pods", "k8s.eniconfig", "k8s.evt", "k8s.kp", "k8s.monitors", "k8s.node", "k8s.nodes", "k8s.np", "k8s.ns",
			"k8s.objects", "k8s.pod", "k8s.rbac", "k8s.sa", "k8s.sgp", "k8s.wh",
		}},
	} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			grant(t, s, user, row.files...)
			cfg := s.Admin()
			cfg.Impersonate.UserName = user
			// The API server learns of each role and each binding on its own, and a source may be read
			// with some of what it needs: of a webhook without the right to read its Service.
			testenv.EventuallyErr(t, "what "+user+" may read", func() error {
				// A connection of its own: one made earlier keeps what it was refused.
				c, err := kube.Connect(kube.Config{Rest: cfg, UserAgent: "test", Now: time.Now})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				ev, err := Collect(t.Context(), Options{Cluster: c, Once: true, Installation: true, Now: time.Now})
				if err != nil {
					t.Fatal(err)
				}
				var wrong problems
				missing := k8s(ev.Nodes[0].First)
				if !slices.Equal(slices.Sorted(maps.Keys(missing)), row.forbidden) {
					wrong.add("missing are %q, want %q", missing, row.forbidden)
				}
				for id, why := range missing {
					if why != evidence.MissingForbidden {
						wrong.add("%s is missing because of %q", id, why)
					}
				}
				if user == "full" {
					checkObjects(t, &wrong, ev)
				}
				if len(wrong) > 0 {
					return errors.New(strings.Join(wrong, "\n"))
				}
				roundTrip(t, ev)
				return nil
			})
		})
	}
}

// problems is what is wrong, so far.
type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// checkInstallation checks the existing objects of the installation and who wrote them.
func checkInstallation(p *problems, r *evidence.Reading) {
	var names []string
	for _, o := range r.Objects.Content {
		names = append(names, o.Name)
		if o.Name == "DaemonSet/aws-node" && (len(o.Managers) != 1 || !slices.Contains(o.Managers[0].Env, "ADDITIONAL_ENI_TAGS") || o.Labels["k8s-app"] != evidence.ContainerNode) {
			p.add("DaemonSet %+v", o)
		}
	}
	want := []string{"DaemonSet/aws-node", "ConfigMap/amazon-vpc-cni", "CustomResourceDefinition/eniconfigs.crd.k8s.amazonaws.com", "CustomResourceDefinition/cninodes.vpcresources.k8s.aws"}
	for _, name := range want {
		if !slices.Contains(names, name) {
			p.add("%s is not among the objects %q", name, names)
		}
	}
	if c := r.Conflist.Content; c == nil || !c.Valid || len(c.Types) != 1 {
		p.add("conflist %+v", c)
	}
	if n := r.Namespace.Content; n.Labels["kubernetes.io/metadata.name"] != kube.DefaultNamespace || !slices.Equal(n.Quotas, []string{"critical"}) {
		p.add("namespace %+v", n)
	}
	if a := r.Admission.Content; len(a) != 2 || a[1].Name != "policy/validate.policy.example" || a[1].Service != "policy/webhook" || a[1].FailurePolicy != "Ignore" || a[1].PodNetwork != nil {
		p.add("admission %+v", a)
	} else if a[0].Name != "closed/closed.policy.example" || a[0].PodNetwork == nil || !*a[0].PodNetwork {
		p.add("admission %+v", a)
	}
	if len(r.Monitors.Content) != 0 || r.AddOn.Missing != evidence.MissingAddOn || r.Role.Missing != evidence.MissingRole {
		p.add("monitors %+v, add-on %+v", r.Monitors, r.AddOn)
	}
}

// checkObjects checks what is read with all rights.
func checkObjects(t *testing.T, p *problems, ev *evidence.Evidence) {
	t.Helper()
	if len(ev.Nodes) != 2 {
		p.add("%d nodes", len(ev.Nodes))
		return
	}
	r := nodeOf(t, ev, "node-a").First
	names := func(pods []evidence.KubePod) (out []string) {
		for _, pod := range pods {
			out = append(out, string(pod.Pod))
		}
		slices.Sort(out)
		return out
	}
	if got := names(r.Pods.Content); !slices.Equal(got, []string{"default/app-node-a", "default/nowhere", "default/policy", "kube-system/aws-node-node-a", "kube-system/kube-proxy-a"}) {
		p.add("pods %q", got)
	}
	var events []string
	for _, e := range r.Events.Content {
		events = append(events, e.Name)
	}
	slices.Sort(events)
	if !slices.Equal(events, []string{"default/app-node-a", "default/nowhere"}) {
		p.add("events of %q", events)
	}
	if ds := r.DaemonSet.Content; ds == nil || !slices.Contains(ds.Containers, evidence.ContainerNode) || len(ds.Env[evidence.ContainerNode]) == 0 || len(ds.Mounts[evidence.ContainerNode]) == 0 || ds.Liveness.Command == nil {
		p.add("DaemonSet %+v", ds)
	}
	if pods := r.DaemonPods.Content; len(pods) != 1 || pods[0].Pod != "kube-system/aws-node-node-a" || *pods[0].Containers[0].Restarts != 1 {
		p.add("pods of the DaemonSet %+v", pods)
	}
	if c := r.ENIConfigs.Content; len(c) != 1 || !c[0].Valid {
		p.add("ENIConfigs %+v", c)
	}
	if n := r.CNINode.Content; n == nil || len(n.Features) != 1 {
		p.add("CNINode %+v", n)
	}
	if n := nodeOf(t, ev, "node-b").First.CNINode; !n.OK() || n.Content != nil {
		p.add("CNINode of a node without one: %+v", n)
	}
	if g := r.GroupPolicies.Content; len(g) != 1 || g[0].PodSelector == nil || g[0].ServiceAccountSelector != nil {
		p.add("SecurityGroupPolicies %+v", g)
	}
	if w := r.Webhooks.Content; len(w) != 1 || w[0].FailurePolicy != "Ignore" {
		p.add("webhooks %+v", w)
	}
	if r.ConfigMap.Content["enable-network-policy-controller"] != "true" || r.KubeProxy.Content.Mode != "ipvs" || len(r.KubeProxy.Content.Pods) != 1 {
		p.add("ConfigMap %v, kube-proxy %+v", r.ConfigMap.Content, r.KubeProxy.Content)
	}
	if b := r.RBAC.Content; len(b.Roles) != 1 || len(b.Bindings) != 0 || !slices.Equal(b.Denied, []string{"patch pods"}) || !slices.Equal(b.Reviewed, evidence.ReviewedRights) {
		p.add("rights %+v", b)
	}
	checkInstallation(p, r)
	if r.ServiceAccount.Content.Name != evidence.ContainerNode || *r.NetworkPolicies.Content.CRDs || r.InstanceType.Content.InstanceType != "m5.large" {
		p.add("%+v, %+v, %+v", r.ServiceAccount, r.NetworkPolicies, r.InstanceType)
	}
}

// TestCollect_AsScreens: what the screens and the command read of pods and events is the same
// evidence for the doctor.
func TestCollect_AsScreens(t *testing.T) {
	t.Parallel()
	s := kubeapi.Start(t)
	populate(t, s)
	const name = "node-a"
	for space, about := range map[string]map[string]any{
		kube.DefaultNamespace: {"kind": "Pod", "namespace": kube.DefaultNamespace, "name": "aws-node-" + name}, "default": {"kind": "Node", "name": name},
	} {
		install(t, s, kube.KindEvents, object("Event", space, "more", map[string]any{
			"involvedObject": about, "type": "Warning", "reason": "Unhealthy", "message": "token=hunter2", "count": 3, "action": "Probing",
			"source": map[string]any{"component": evidence.ContainerNode, "host": name}, "firstTimestamp": "2026-11-21T09:00:00Z", "lastTimestamp": "2026-11-21T09:05:00Z",
		}))
	}
	now := time.Now().UTC()
	c, err := kube.Connect(kube.Config{Rest: s.Admin(), UserAgent: "test", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	command := nodeOf(t, collectAll(t, Options{Cluster: c, Once: true, Now: func() time.Time { return now }}), name).First
	d := watch.Detail{Node: name, Errors: map[watch.Want]document.NodeError{}}
	if d.Pods, err = c.Pods(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if d.KubeEvents, err = c.NodeEvents(t.Context(), name, time.Time{}); err != nil {
		t.Fatal(err)
	}
	node := store.NewNode(document.NodeIPAM{Metadata: document.ObjectMeta{Name: name}, State: document.StateLive})
	screens := watched.OfNode(node, d, evidence.Scope{Node: name}, now).Nodes[0].First
	bound := slices.DeleteFunc(slices.Clone(command.Pods.Content), func(p evidence.KubePod) bool { return p.Node == nil })
	byPod := func(a, b evidence.KubePod) int { return strings.Compare(string(a.Pod), string(b.Pod)) }
	slices.SortFunc(bound, byPod)
	if diff := cmp.Diff(bound, screens.Pods.Content, cmpopts.EquateComparable(netip.Addr{})); diff != "" || len(bound) != 3 {
		t.Errorf("pods (-command +screens):\n%s", diff)
	}
	if diff := cmp.Diff(command.DaemonPods, screens.DaemonPods); diff != "" || len(screens.DaemonPods.Content) != 1 {
		t.Errorf("pods of aws-node (-command +screens):\n%s", diff)
	}
	both := slices.DeleteFunc(slices.Clone(command.Events.Content), func(e evidence.KubeEvent) bool { return e.Name == "default/nowhere" }) // on no node
	if diff := cmp.Diff(both, screens.Events.Content); diff != "" || len(both) != 3 {
		t.Errorf("events (-command +screens):\n%s", diff)
	}
}
