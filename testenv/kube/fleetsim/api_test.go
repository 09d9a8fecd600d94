package fleetsim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"cnictl/deploy"
)

func clientOf(t *testing.T, cfg *rest.Config) dynamic.Interface {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	hc, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hc.CloseIdleConnections)
	client, err := dynamic.NewForConfigAndClient(cfg, hc)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func of(c dynamic.Interface, resource string) dynamic.NamespaceableResourceInterface {
	return c.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource})
}

func configOf(t *testing.T, kubeconfig []byte) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestUsers_Roles: a user with roles may do what they grant, where they are bound, and nothing
// else.
func TestUsers_Roles(t *testing.T) {
	t.Parallel()
	s := New(t, Options{Nodes: 1, Seed: 1, Churn: -1})
	roles, err := deploy.RBAC("cnictl")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := s.KubeconfigWith("operator", roles...)
	if err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, configOf(t, kubeconfig))
	if _, err := of(c, "nodes").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list nodes: %v", err)
	}
	if _, err := of(c, "namespaces").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list namespaces: %v", err)
	}
	for _, tt := range []struct {
		a    authorizationv1.ResourceAttributes
		want bool
	}{
		{authorizationv1.ResourceAttributes{Namespace: systemNamespace, Verb: "create", Resource: "pods", Subresource: "portforward"}, true},
		{authorizationv1.ResourceAttributes{Namespace: "default", Verb: "create", Resource: "pods", Subresource: "portforward"}, false},
		{authorizationv1.ResourceAttributes{Namespace: systemNamespace, Verb: "create", Resource: "pods", Subresource: "exec"}, false},
		{authorizationv1.ResourceAttributes{Namespace: systemNamespace, Verb: "get", Resource: "configmaps", Name: "amazon-vpc-cni"}, true},
		{authorizationv1.ResourceAttributes{Namespace: systemNamespace, Verb: "get", Resource: "configmaps", Name: "another"}, false},
		{authorizationv1.ResourceAttributes{Verb: "watch", Group: "vpcresources.k8s.aws", Resource: "cninodes"}, true},
		{authorizationv1.ResourceAttributes{Verb: "watch", Resource: "cninodes"}, false},
	} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
			Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &tt.a},
		})
		if err != nil {
			t.Fatal(err)
		}
		review, err := c.Resource(authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews")).
			Create(t.Context(), &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); allowed != tt.want {
			t.Errorf("%+v: %t", tt.a, allowed)
		}
	}
}

// TestWatch_TooOld: a watch from a version that is no longer stored gets 410, as the answer or
// as an event, and so does a list with an old token.
func TestWatch_TooOld(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := New(t, Options{Nodes: 40, Churn: time.Second, Now: c.Now})
	client := clientOf(t, s.RESTConfig())
	page, err := of(client, "pods").List(t.Context(), metav1.ListOptions{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for s.hub.oldest() <= firstVersion {
		c.add(20 * time.Minute)
		for _, n := range s.nodes {
			n.withWorld(func(*world) {})
		}
	}
	if _, err := of(client, "pods").Watch(t.Context(), metav1.ListOptions{ResourceVersion: page.GetResourceVersion()}); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("watch: %v", err)
	}
	if _, err := of(client, "pods").List(t.Context(), metav1.ListOptions{Limit: 10, Continue: page.GetContinue()}); !apierrors.IsResourceExpired(err) {
		t.Errorf("list: %v", err)
	}
	events, err := of(client, "events").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedCreatePodSandBox"})
	if err != nil || len(events.Items) == 0 || !strings.Contains(fmt.Sprint(events.Items[0].Object["message"]), "failed to assign an IP address to container") {
		t.Errorf("events: %d, %v", len(events.Items), err)
	}
}
