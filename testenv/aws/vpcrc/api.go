package vpcrc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var (
	nodesResource      = corev1.SchemeGroupVersion.WithResource("nodes")
	podsResource       = corev1.SchemeGroupVersion.WithResource("pods")
	eventsResource     = corev1.SchemeGroupVersion.WithResource("events")
	accountsResource   = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	cninodesResource   = schema.GroupVersionResource{Group: "vpcresources.k8s.aws", Version: "v1alpha1", Resource: "cninodes"}
	policiesResource   = schema.GroupVersionResource{Group: "vpcresources.k8s.aws", Version: "v1beta1", Resource: "securitygrouppolicies"}
	eniConfigsResource = schema.GroupVersionResource{Group: "crd.k8s.amazonaws.com", Version: "v1alpha1", Resource: "eniconfigs"}
)

// cninode is the relevant part of a CNINode.
type cninode struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Features  []feature         `json:"features"`
		Tags      map[string]string `json:"tags"`
		ManagedBy string            `json:"managedBy"`
	} `json:"spec"`
}

type feature struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ours reports whether this controller manages the object.
func (c *cninode) ours() bool { return c.Spec.ManagedBy == "" || c.Spec.ManagedBy == cninodeManager }

// wants returns the value of a feature, and whether the feature is present.
func (c *cninode) wants(name string) (string, bool) {
	for _, f := range c.Spec.Features {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

type eniConfig struct {
	Spec struct {
		Subnet         string   `json:"subnet"`
		SecurityGroups []string `json:"securityGroups"`
	} `json:"spec"`
}

// api is the Kubernetes API as the controller uses it.
type api struct {
	objects dynamic.Interface
	http    *http.Client

	mu     sync.Mutex            // guards events
	events map[eventKey]recorded // events already written, counted when they repeat
}

func newAPI(o Options) (*api, error) {
	c := rest.CopyConfig(o.Kube)
	c.QPS, c.Burst, c.UserAgent = -1, 0, eventComponent
	c.Impersonate = rest.ImpersonationConfig{UserName: controllerUser, Groups: []string{"system:masters"}}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("build API client: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(c, client)
	if err != nil {
		return nil, fmt.Errorf("build API client: %w", err)
	}
	return &api{objects: objects, http: client, events: make(map[eventKey]recorded)}, nil
}

func (a *api) close() { utilnet.CloseIdleConnectionsFor(a.http.Transport) }

// into decodes an object into one of our types or a Kubernetes type.
func into[T any](u *unstructured.Unstructured) (*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return out, nil
}

// get reads an object. It returns nil if the object does not exist.
func get[T any](ctx context.Context, a *api, r schema.GroupVersionResource, namespace, name string) (*T, error) {
	u, err := a.of(r, namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", r.Resource, name, err)
	}
	return into[T](u)
}

func (a *api) of(r schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return a.objects.Resource(r)
	}
	return a.objects.Resource(r).Namespace(namespace)
}

// merge patches an object or one of its subresources.
func (a *api) merge(ctx context.Context, r schema.GroupVersionResource, namespace, name string, patch map[string]any, subresource ...string) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	if _, err := a.of(r, namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, subresource...); err != nil {
		return fmt.Errorf("patch %s %s: %w", r.Resource, name, err)
	}
	return nil
}

// groupsFor returns the union of the security groups of all policies that match a pod. A
// missing ServiceAccount is an error, even without a policy; a missing CRD is not.
func (a *api) groupsFor(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	list, err := a.of(policiesResource, pod.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	name := pod.Spec.ServiceAccountName
	if name == "" {
		name = "default"
	}
	account, err := get[corev1.ServiceAccount](ctx, a, accountsResource, pod.Namespace, name)
	if err != nil {
		return nil, err
	}
	if account == nil {
		return nil, apierrors.NewNotFound(accountsResource.GroupResource(), name)
	}
	var policies []policy
	for i := range list.Items {
		p, err := into[policy](&list.Items[i])
		if err != nil {
			return nil, err
		}
		policies = append(policies, *p)
	}
	return matchGroups(policies, pod.Labels, account.Labels), nil
}
