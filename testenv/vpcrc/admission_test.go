package vpcrc

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func plainPod(edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
	for _, e := range edit {
		e(p)
	}
	return p
}

func TestMutatePod(t *testing.T) {
	t.Parallel()
	fargate := func(p *corev1.Pod) { p.Labels = map[string]string{fargateLabel: "x"} }
	forged := func(p *corev1.Pod) { p.Annotations = map[string]string{fargateAnnotation: "sg-mine"} }
	for _, row := range []struct {
		name     string
		pod      *corev1.Pod
		groups   []string
		err      error
		allowed  bool
		message  string
		eni      string // of containers[0] afterwards
		fargate  string // annotation afterwards
		mutation bool
	}{
		{"host network", plainPod(func(p *corev1.Pod) { p.Spec.HostNetwork = true }), []string{"sg-a"}, errors.New("not asked"), true, "SGP not supported on Pod running on HostNetwork", "0", "", false},
		{"windows", plainPod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "windows"} }), []string{"sg-a"}, errors.New("not asked"), true, "Windows IPAM is not enabled", "0", "", false},
		{"no policy", plainPod(), nil, nil, true, "Pod didn't match any SGP", "0", "", false},
		{"policy", plainPod(), []string{"sg-a", "sg-b"}, nil, true, "", "1", "", true},
		{"policy and a request by hand", plainPod(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{podENIKey: resource.MustParse("5")}
		}), []string{"sg-a"}, nil, true, "", "1", "", true},
		{"no account", plainPod(), nil, errors.New("gone"), false, "Failed to get Matching SGP for Pods, rejecting event, error gone", "0", "", false},
		{"fargate, no account", plainPod(fargate), nil, errors.New("gone"), false, "Failed to get Matching SGP for Pods, rejecting event", "0", "", false},
		{"fargate", plainPod(fargate), []string{"sg-a", "sg-b"}, nil, true, "", "0", "sg-a,sg-b", true},
		{"fargate without a policy", plainPod(fargate), nil, nil, true, "Pod didn't match any SGP", "0", "", false},
		{"fargate, forged", plainPod(fargate, forged), nil, nil, true, "", "0", "", true},
	} {
		v := mutatePod(row.pod, func(*corev1.Pod) ([]string, error) { return row.groups, row.err })
		if v.allowed != row.allowed || v.message != row.message || (v.pod != nil) != row.mutation {
			t.Errorf("%s: %+v", row.name, v)
		}
		after := v.pod
		if after == nil {
			after = row.pod
		}
		for _, l := range []corev1.ResourceList{after.Spec.Containers[0].Resources.Limits, after.Spec.Containers[0].Resources.Requests} {
			if q := l[podENIKey]; row.mutation && q.String() != row.eni {
				t.Errorf("%s: %s of the resource, want %s", row.name, q.String(), row.eni)
			}
		}
		if len(after.Spec.Containers[1].Resources.Limits) > 0 {
			t.Errorf("%s: the second container was changed", row.name)
		}
		if got := after.Annotations[fargateAnnotation]; got != row.fargate {
			t.Errorf("%s: fargate annotation %q", row.name, got)
		}
	}
}

func TestMutatePod_LeavesItsArgument(t *testing.T) {
	t.Parallel()
	p := plainPod()
	mutatePod(p, func(*corev1.Pod) ([]string, error) { return []string{"sg-a"}, nil })
	if len(p.Spec.Containers[0].Resources.Limits) != 0 {
		t.Error("the argument was changed")
	}
}

func TestValidatePod(t *testing.T) {
	t.Parallel()
	with := func(key, value string) *corev1.Pod {
		return plainPod(func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} })
	}
	for _, row := range []struct {
		name     string
		user     string
		old, pod *corev1.Pod
		want     string
	}{
		{"created without", "me", nil, plainPod(), ""},
		{"created with it", controllerUser, nil, with(podENIKey, "[]"), "pod cannot be created with vpc.amazonaws.com/pod-eni annotation"},
		{"set by the controller", controllerUser, plainPod(), with(podENIKey, "[]"), ""},
		{"set by its service account", "system:serviceaccount:kube-system:eks-vpc-resource-controller", plainPod(), with(podENIKey, "[]"), ""},
		{"set by the node", nodeAgent, plainPod(), with(podENIKey, "[]"), "annotation is not set by vpc-resource-controller"},
		{"set empty by another", "me", plainPod(), with(podENIKey, ""), "annotation is not set by vpc-resource-controller"},
		{"changed by another", "me", with(podENIKey, "[]"), with(podENIKey, "[1]"), "annotation is not set by vpc-resource-controller"},
		{"removed by another", "me", with(podENIKey, "[]"), plainPod(), "annotation is not set by vpc-resource-controller"},
		{"kept by another", "me", with(podENIKey, "[]"), with(podENIKey, "[]"), ""},
		{"fargate's changed", controllerUser, plainPod(), with(fargateAnnotation, "sg-a"), "annotation is not set by mutating webhook"},
	} {
		if v := validatePod(row.user, row.old, row.pod); v.message != row.want || v.allowed != (row.want == "") {
			t.Errorf("%s: %+v", row.name, v)
		}
	}
}

func TestValidateNode(t *testing.T) {
	t.Parallel()
	node := func(edit func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}}}
		edit(n)
		return n
	}
	const refusal = "aws-node can only update limited fields on the Node Object"
	for _, row := range []struct {
		name, user string
		edit       func(*corev1.Node)
		want       string
	}{
		{"nothing", nodeAgent, func(*corev1.Node) {}, ""},
		{"trunk label", nodeAgent, func(n *corev1.Node) { n.Labels[trunkLabel] = "true" }, ""},
		{"ENIConfig label", nodeAgent, func(n *corev1.Node) { n.Labels[eniConfigLabel] = "x" }, ""},
		{"managed fields", nodeAgent, func(n *corev1.Node) { n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} }, ""},
		{"other label", nodeAgent, func(n *corev1.Node) { n.Labels["a"] = "c" }, refusal},
		{"annotation", nodeAgent, func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, refusal},
		{"taint", nodeAgent, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a"}} }, refusal},
		{"condition", nodeAgent, func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{{Type: "x"}} }, refusal},
		{"anything by another", "me", func(n *corev1.Node) { n.Spec.Unschedulable = true }, ""},
	} {
		if v := validateNode(row.user, node(func(*corev1.Node) {}), node(row.edit)); v.message != row.want || v.allowed != (row.want == "") {
			t.Errorf("%s: %+v", row.name, v)
		}
	}
}
