package vpcrc

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"cnictl/testenv"
	"cnictl/testenv/kubeapi"
)

// hooked is a lab whose API server calls the controller's webhooks. It has a separate server,
// because webhooks apply to all pods and nodes of a server.
func hooked(t *testing.T) *lab {
	t.Helper()
	l := newLabOn(t, kubeapi.Start(t), "m5.large", func(o *Options) { o.Webhook = true })
	l.want(feature{Name: featurePodGroups})
	l.awaitTrunk()
	l.policy("web")
	// A registration takes a moment to take effect everywhere in the API server.
	testenv.EventuallyErr(l.t, "webhooks are in force", func() error {
		_, err := l.tryPod("probe", func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{podENIKey: "[]"}) })
		if apierrors.IsForbidden(err) {
			return nil
		}
		_ = l.rcAPI().of(podsResource, l.name).Delete(t.Context(), "probe", metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		return errNotYet
	})
	return l
}

var errNotYet = apierrors.NewServiceUnavailable("not yet")

// tryPod creates a pod as a user would, without the resource.
func (l *lab) tryPod(name string, edit func(*unstructured.Unstructured)) (*corev1.Pod, error) {
	l.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"nodeName": l.name, "containers": []any{map[string]any{"name": "app", "image": "app"}},
	}}}
	u.SetAPIVersion("v1")
	u.SetKind("Pod")
	u.SetName(name)
	u.SetLabels(map[string]string{"app": "web"})
	if edit != nil {
		edit(u)
	}
	made, err := l.rcAPI().of(podsResource, l.name).Create(l.t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return into[corev1.Pod](made)
}

func requested(p *corev1.Pod) string {
	q := p.Spec.Containers[0].Resources.Limits[podENIKey]
	return q.String()
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	l := hooked(t)
	for _, row := range []struct {
		name   string
		faults Faults
		edit   func(*unstructured.Unstructured)
		want   string // of the resource
		denied string
	}{
		{"matches", Faults{}, nil, "1", ""},
		{"no-policy", Faults{}, func(u *unstructured.Unstructured) { u.SetLabels(nil) }, "0", ""},
		{"down", Faults{WebhookDown: true}, nil, "0", ""},
		{"no-account", Faults{NoServiceAccount: true}, nil, "", `Failed to get Matching SGP for Pods, rejecting event, error serviceaccounts "default" not found`},
		{"other-account", Faults{}, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "missing", "spec", "serviceAccountName")
		}, "", `Failed to get Matching SGP for Pods, rejecting event, error serviceaccounts "missing" not found`},
		{"annotated", Faults{}, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{podENIKey: "[]"}) }, "", "pod cannot be created with vpc.amazonaws.com/pod-eni annotation"},
	} {
		l.rc.SetFaults(row.faults)
		pod, err := l.tryPod(row.name, row.edit)
		switch {
		case row.denied == "" && err != nil:
			t.Errorf("%s: %v", row.name, err)
		case row.denied == "" && requested(pod) != row.want:
			t.Errorf("%s: %s of the resource, want %s", row.name, requested(pod), row.want)
		case row.denied != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), row.denied)):
			t.Errorf("%s: %v, want %s", row.name, err, row.denied)
		}
	}
	l.rc.SetFaults(Faults{})
	// The controller's own write passes.
	l.awaitBranches("matches")
	err := l.rcAPI().merge(t.Context(), podsResource, l.name, "matches", map[string]any{"metadata": map[string]any{"annotations": map[string]any{podENIKey: "[]"}}})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "annotation is not set by vpc-resource-controller") {
		t.Errorf("another's annotation: %v", err)
	}
}

func TestWebhooks_HoldTheNodesDaemon(t *testing.T) {
	t.Parallel()
	l := hooked(t)
	c := l.api.Admin()
	c.Impersonate = rest.ImpersonationConfig{UserName: nodeAgent, Groups: []string{"system:masters"}}
	objects, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	agent := &api{objects: objects}
	label := func(key string) error {
		return agent.merge(t.Context(), nodesResource, "", l.name, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: "x"}}})
	}
	if err := label(eniConfigLabel); err != nil {
		t.Errorf("its own label: %v", err)
	}
	if err := label("example.com/other"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "aws-node can only update limited fields on the Node Object") {
		t.Errorf("another label: %v", err)
	}
}

func TestMutate_IsTheWebhookWithoutAServer(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.policy("web")
	pod := plainPod(app("web"))
	pod.Namespace = l.name
	got, err := l.rc.Mutate(t.Context(), pod)
	if err != nil || requested(got) != "1" {
		t.Errorf("%v, %+v", err, got)
	}
	l.rc.SetFaults(Faults{NoServiceAccount: true})
	if _, err := l.rc.Mutate(t.Context(), pod); err == nil || !strings.HasPrefix(err.Error(), "Failed to get Matching SGP for Pods, rejecting event, error ") {
		t.Errorf("without an account: %v", err)
	}
}
