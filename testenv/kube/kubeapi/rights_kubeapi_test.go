package kubeapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"cnictl/testenv/kube/kubeapi"
)

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	cninodes   = schema.GroupVersionResource{Group: "vpcresources.k8s.aws", Version: "v1alpha1", Resource: "cninodes"}
	eniconfigs = schema.GroupVersionResource{Group: "crd.k8s.amazonaws.com", Version: "v1alpha1", Resource: "eniconfigs"}
	policies   = schema.GroupVersionResource{Group: "vpcresources.k8s.aws", Version: "v1beta1", Resource: "securitygrouppolicies"}
)

// clientOf builds a client from a kubeconfig as the daemon does.
func clientOf(t *testing.T, kubeconfig string) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func object(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// TestRights: each user may do what deploy/rbac grants it, and what it may not is listed as denied.
// TestRights of deploy/chart has every right.
func TestRights(t *testing.T) {
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNode(t, name)
	s.CreatePod(t, "default", name, name)
	cninode := object("vpcresources.k8s.aws/v1alpha1", "CNINode", name, map[string]any{})
	if _, err := s.Objects().Resource(cninodes).Create(t.Context(), cninode, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	annotation := []byte(`{"metadata":{"annotations":{"vpc.amazonaws.com/pod-ips":"10.0.0.7"}}}`)
	features := []byte(`{"spec":{"features":[{"name":"SecurityGroupsForPods"}]}}`)

	for _, tc := range []struct {
		user, right string
		allowed     bool
		do          func(dynamic.Interface) error
	}{
		{"aws-node", "list pods", true, func(c dynamic.Interface) error {
			_, err := c.Resource(pods).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
			return err
		}},
		{"aws-node", "patch cninodes.vpcresources.k8s.aws", true, func(c dynamic.Interface) error {
			_, err := c.Resource(cninodes).Patch(t.Context(), name, types.MergePatchType, features, metav1.PatchOptions{})
			return err
		}},
		{"aws-node", "patch pods", false, func(c dynamic.Interface) error {
			_, err := c.Resource(pods).Namespace("default").Patch(t.Context(), name, types.MergePatchType, annotation, metav1.PatchOptions{})
			return err
		}},
		{"aws-node", "patch cninodes/status.vpcresources.k8s.aws", false, func(c dynamic.Interface) error {
			_, err := c.Resource(cninodes).Patch(t.Context(), name, types.MergePatchType, features, metav1.PatchOptions{}, "status")
			return err
		}},
		{"aws-node", "get secrets", false, func(c dynamic.Interface) error {
			_, err := c.Resource(secrets).Namespace("kube-system").Get(t.Context(), "any", metav1.GetOptions{})
			return err
		}},
		{"aws-node-annotate", "patch pods", true, func(c dynamic.Interface) error {
			_, err := c.Resource(pods).Namespace("default").Patch(t.Context(), name, types.MergePatchType, annotation, metav1.PatchOptions{})
			return err
		}},
		{"cni-metrics-helper", "list pods", true, func(c dynamic.Interface) error {
			_, err := c.Resource(pods).Namespace("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "k8s-app=aws-node"})
			return err
		}},
		{"cni-metrics-helper", "list nodes", false, func(c dynamic.Interface) error {
			_, err := c.Resource(nodes).List(t.Context(), metav1.ListOptions{})
			return err
		}},
	} {
		t.Run(tc.user+"/"+tc.right, func(t *testing.T) {
			if !tc.allowed {
				s.ExpectDenied(tc.user, tc.right)
			}
			err := tc.do(clientOf(t, s.Kubeconfig(t, tc.user)))
			if tc.allowed && err != nil {
				t.Error(err)
			}
			if !tc.allowed && !apierrors.IsForbidden(err) {
				t.Errorf("want a refusal, have %v", err)
			}
			denied, err := s.Denied()
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(denied, kubeapi.Denial{User: tc.user, Right: tc.right}); got == tc.allowed {
				t.Errorf("listed as denied: %v; the list: %v", got, denied)
			}
		})
	}
}

// TestKubeconfig_IsTheServiceAccount: the API server knows the user by the name that a
// cluster's admission webhooks look for.
func TestKubeconfig_IsTheServiceAccount(t *testing.T) {
	s := kubeapi.Shared(t)
	client := clientOf(t, s.Kubeconfig(t, "aws-node"))
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	resource := schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}
	answer, err := client.Resource(resource).Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	user, _, _ := unstructured.NestedString(answer.Object, "status", "userInfo", "username")
	if want := "system:serviceaccount:kube-system:aws-node"; user != want {
		t.Errorf("user %q, want %q", user, want)
	}
}

func TestCRD_CNINode(t *testing.T) {
	s := kubeapi.Shared(t)
	name := s.Name(t)
	objects := s.Objects().Resource(cninodes)
	create := func(name string, spec map[string]any) error {
		_, err := objects.Create(t.Context(), object("vpcresources.k8s.aws/v1alpha1", "CNINode", name, spec), metav1.CreateOptions{})
		return err
	}
	patch := func(patch string) error {
		_, err := objects.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	if err := create(name, map[string]any{"features": []any{
		map[string]any{"name": "CustomNetworking", "value": "zone-a"},
		map[string]any{"name": "CustomNetworking", "value": "zone-a"}, // duplicates are possible
	}}); err != nil {
		t.Fatal(err)
	}
	if err := create(name+"-other", map[string]any{"managedBy": "eks-auto-mode"}); err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct {
		name string
		do   func() error
		want string // part of the refusal; "" = allowed
	}{
		{"unknown manager", func() error { return patch(`{"spec":{"managedBy":"me"}}`) }, "Unsupported value"},
		{"manager set late", func() error { return patch(`{"spec":{"managedBy":"vpc-resource-controller"}}`) }, ""},
		{"manager changed", func() error { return patch(`{"spec":{"managedBy":"eks-auto-mode"}}`) }, "managedBy is immutable once set"},
		{"manager removed", func() error { return patch(`{"spec":{"managedBy":null}}`) }, "managedBy cannot be removed once set"},
		{"spec removed", func() error { return patch(`{"spec":null}`) }, "managedBy cannot be removed once set"},
		{"feature added", func() error { return patch(`{"spec":{"features":[{"name":"SecurityGroupsForPods","value":""}]}}`) }, ""},
		{"tag of a wrong type", func() error { return patch(`{"spec":{"tags":{"a":1}}}`) }, "spec.tags.a"},
		{"stale version", func() error { return patch(`{"metadata":{"resourceVersion":"1"},"spec":{"tags":{"a":"b"}}}`) }, "the object has been modified"},
	} {
		t.Run(tc.name, func(t *testing.T) { check(t, tc.do(), tc.want) })
	}

	status := `{"status":{"trunkInterface":{"id":"eni-1","subnetID":"subnet-1"}}}`
	_, err := objects.Patch(t.Context(), name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	check(t, err, "status.trunkInterface.subnetID")

	list, err := objects.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.managedBy=eks-auto-mode"})
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) bool {
		return slices.ContainsFunc(list.Items, func(o unstructured.Unstructured) bool { return o.GetName() == name })
	}
	if !named(name+"-other") || named(name) {
		t.Errorf("selected by manager: %v", list.Items)
	}
}

// TestCRD_ENIConfig: decisions match upstream's definition (amazon-vpc-cni-k8s:
// config/master/aws-k8s-cni.yaml).
func TestCRD_ENIConfig(t *testing.T) {
	s := kubeapi.Shared(t)
	name := s.Name(t)
	objects := s.Objects().Resource(eniconfigs)
	for _, tc := range []struct {
		name    string
		members map[string]any
		want    string
	}{
		{"no-spec", map[string]any{}, ""},
		{"subnet-alone", map[string]any{"spec": map[string]any{"subnet": "subnet-0123456789abcdef0"}}, ""},
		{"empty-subnet", map[string]any{"spec": map[string]any{"subnet": ""}}, ""},
		{"unknown", map[string]any{
			"kept": true, "spec": map[string]any{"subnet": "subnet-1", "securityGroups": []any{"sg-1"}, "pruned": true}, "status": map[string]any{"pruned": true},
		}, ""},
		{"no-subnet", map[string]any{"spec": map[string]any{"securityGroups": []any{"sg-1"}}}, "spec.subnet: Required value"},
		{"one-group", map[string]any{"spec": map[string]any{"subnet": "subnet-1", "securityGroups": "sg-1"}}, "spec.securityGroups"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := object("crd.k8s.amazonaws.com/v1alpha1", "ENIConfig", name+"-"+tc.name, nil)
			delete(o.Object, "spec")
			maps.Copy(o.Object, tc.members)
			made, err := objects.Create(t.Context(), o, metav1.CreateOptions{})
			check(t, err, tc.want)
			if err != nil || tc.members["kept"] == nil {
				return
			}
			spec, _ := made.Object["spec"].(map[string]any)
			status, _ := made.Object["status"].(map[string]any)
			if made.Object["kept"] == nil || spec["pruned"] != nil || status["pruned"] != nil || spec["subnet"] == nil {
				t.Errorf("unknown members: %v", made.Object)
			}
		})
	}
}

func TestCRD_SecurityGroupPolicy(t *testing.T) {
	s := kubeapi.Shared(t)
	namespace := s.Name(t)
	s.CreateNamespace(t, namespace)
	objects := s.Objects().Resource(policies).Namespace(namespace)
	var many []any
	for range 17 {
		many = append(many, "sg-1")
	}
	for _, tc := range []struct {
		name string
		spec map[string]any
		want string
	}{
		{"empty", map[string]any{}, ""},
		{"selector-of-everything", map[string]any{"podSelector": map[string]any{}, "securityGroups": map[string]any{"groupIds": []any{"sg-1"}}}, ""},
		{"free-operator", map[string]any{"podSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Like"}}}}, ""},
		{"many-groups", map[string]any{"securityGroups": map[string]any{"groupIds": many}}, ""},
		{"no-group", map[string]any{"securityGroups": map[string]any{"groupIds": []any{}}}, "spec.securityGroups.groupIds"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := object("vpcresources.k8s.aws/v1beta1", "SecurityGroupPolicy", tc.name, tc.spec)
			_, err := objects.Create(t.Context(), o, metav1.CreateOptions{})
			check(t, err, tc.want)
		})
	}
}

// check compares a refusal with part of its text.
func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("want a refusal with %q, have %v", want, err)
	}
}
