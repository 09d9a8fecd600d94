package chart_test

import (
	"context"
	"strings"
	"testing"

	"cnictl/testenv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var (
	pods     = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	cninodes = schema.GroupVersionResource{Group: "vpcresources.k8s.aws", Version: "v1alpha1", Resource: "cninodes"}
)

// TestAdmissionPolicy: with the policy, a token of the daemon changes its own node's CNINode and one
// annotation of its own node's pods, and nothing else that its role allows.
func TestAdmissionPolicy(t *testing.T) {
	l := newLab(t)
	l.must("install", cni, "--set", "admissionPolicy.create=true,env.ANNOTATE_POD_IP=true")
	t.Cleanup(func() { // it would refuse the next test's requests
		l := &lab{T: t, s: l.s, kubeconfig: l.kubeconfig}
		for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
			l.check(ignoreAbsent(l.of(kind).Delete(context.WithoutCancel(t.Context()), account, metav1.DeleteOptions{})))
		}
	})
	name := l.s.Name(t)
	here, there := name+"-here", name+"-there"
	l.s.CreateNamespace(t, name)
	for _, node := range []string{here, there} {
		l.s.CreateNode(t, node)
		_, err := l.s.Objects().Resource(cninodes).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "vpcresources.k8s.aws/v1alpha1", "kind": "CNINode", "metadata": map[string]any{"name": node}, "spec": map[string]any{},
		}}, metav1.CreateOptions{})
		l.check(err)
	}
	annotated := func(p *corev1.Pod) {
		p.Annotations = map[string]string{"vpc.amazonaws.com/pod-eni": "[]"}
		p.Labels = map[string]string{"app": "web"}
	}
	l.s.CreatePod(t, name, "mine", here, annotated)
	l.s.CreatePod(t, name, "theirs", there, annotated)
	l.s.CreatePod(t, name, "pending", "", annotated)
	daemon := l.s.CreatePod(t, namespace, name, here, func(p *corev1.Pod) { p.Spec.ServiceAccountName = account })
	bound := l.daemon(map[string]any{"boundObjectRef": map[string]any{
		"apiVersion": "v1", "kind": "Pod", "name": daemon.Name, "uid": string(daemon.UID),
	}})
	loose := l.daemon(map[string]any{})

	pod := func(c dynamic.Interface, pod, patch string) error {
		kind := types.MergePatchType
		if strings.HasPrefix(patch, "[") {
			kind = types.JSONPatchType
		}
		_, err := c.Resource(pods).Namespace(name).Patch(t.Context(), pod, kind, []byte(patch), metav1.PatchOptions{})
		return err
	}
	cninode := func(node, patch string) error {
		_, err := bound.Resource(cninodes).Patch(t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	features := func(c dynamic.Interface, node string) error {
		patch := `{"spec":{"features":[{"name":"SecurityGroupsForPods"}]}}`
		_, err := c.Resource(cninodes).Patch(t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	const podIPs = `{"metadata":{"annotations":{"vpc.amazonaws.com/pod-ips":"10.0.0.7"}}}`
	testenv.Eventually(l, "the policies", func() bool { // the server compiles policies some time after they are stored
		return apierrors.IsForbidden(pod(bound, "theirs", podIPs))
	})
	const onlyPods, onlyIPs = "may change only pods of that node", "may change only the annotation vpc.amazonaws.com/pod-ips"
	for _, row := range []struct {
		name    string
		err     error
		refused string
	}{
		{"annotate a pod of the node", pod(bound, "mine", podIPs), ""},
		{"remove the annotation", pod(bound, "mine", `{"metadata":{"annotations":{"vpc.amazonaws.com/pod-ips":null}}}`), ""},
		{"features of the node", features(bound, here), ""},
		{"a pod of another node", pod(bound, "theirs", podIPs), onlyPods},
		{"a pod without a node", pod(bound, "pending", podIPs), onlyPods},
		{"features of another node", features(bound, there), "may change only the CNINode of that node"},
		{"an image", pod(bound, "mine", `[{"op":"replace","path":"/spec/containers/0/image","value":"evil"}]`), onlyIPs},
		{"a toleration", pod(bound, "mine", `[{"op":"add","path":"/spec/tolerations/-","value":{"key":"a","operator":"Exists"}}]`), onlyIPs},
		{"a branch ENI", pod(bound, "mine", `{"metadata":{"annotations":{"vpc.amazonaws.com/pod-eni":"[{}]"}}}`), onlyIPs},
		{"another annotation", pod(bound, "mine", `{"metadata":{"annotations":{"a":"b"}}}`), onlyIPs},
		{"another annotation besides", pod(bound, "mine", strings.Replace(podIPs, `{"vpc`, `{"a":"b","vpc`, 1)), onlyIPs},
		{"no annotations", pod(bound, "mine", `{"metadata":{"annotations":null}}`), onlyIPs},
		{"a label", pod(bound, "mine", `{"metadata":{"labels":{"app":"db"}}}`), onlyIPs},
		{"no labels", pod(bound, "mine", `{"metadata":{"labels":null}}`), onlyIPs},
		{"a finalizer", pod(bound, "mine", `{"metadata":{"finalizers":["a.example/b"]}}`), onlyIPs},
		{"an owner", pod(bound, "mine", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}`), onlyIPs},
		{"a name's prefix", pod(bound, "mine", `{"metadata":{"generateName":"db-"}}`), onlyIPs},
		{"tags of its CNINode", cninode(here, `{"spec":{"tags":{"kubernetes.io/cluster/other":"owned"}}}`), onlyIPs},
		{"the manager of its CNINode", cninode(here, `{"spec":{"managedBy":"eks-auto-mode"}}`), onlyIPs},
		{"a finalizer of its CNINode", cninode(here, `{"metadata":{"finalizers":["a.example/b"]}}`), onlyIPs},
		{"an annotation of its CNINode", cninode(here, `{"metadata":{"annotations":{"vpc.amazonaws.com/pod-ips":"1"}}}`), onlyIPs},
		{"a token without a node", pod(loose, "mine", podIPs), "the token does not say which node"},
		{"a token without a node, features", features(loose, here), "the token does not say which node"},
		{"another user", pod(l.s.Objects(), "theirs", `{"metadata":{"labels":{"app":"db"}}}`), ""},
		{"another user, features", features(l.s.Objects(), there), ""},
	} {
		refused := apierrors.IsForbidden(row.err) && strings.Contains(row.err.Error(), row.refused)
		if row.refused == "" && row.err != nil || row.refused != "" && !refused {
			t.Errorf("%s: %v, want %q", row.name, row.err, row.refused)
		}
	}
}

// daemon returns a client with a token of the daemon's service account.
func (l *lab) daemon(spec map[string]any) dynamic.Interface {
	l.Helper()
	token, err := l.of("ServiceAccount").Create(l.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": account}, "spec": spec,
	}}, metav1.CreateOptions{}, "token")
	l.check(err)
	text, _, _ := unstructured.NestedString(token.Object, "status", "token")
	admin := l.s.Admin()
	c, err := dynamic.NewForConfig(&rest.Config{Host: admin.Host, BearerToken: text, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData}})
	l.check(err)
	return c
}
