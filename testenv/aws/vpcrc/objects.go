package vpcrc

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	nodesResource      = corev1.SchemeGroupVersion.WithResource("nodes")
	podsResource       = corev1.SchemeGroupVersion.WithResource("pods")
	eventsResource     = corev1.SchemeGroupVersion.WithResource("events")
	cninodesResource   = schema.GroupVersionResource{Group: "vpcresources.k8s.aws", Version: "v1alpha1", Resource: "cninodes"}
	eniConfigsResource = schema.GroupVersionResource{Group: "crd.k8s.amazonaws.com", Version: "v1alpha1", Resource: "eniconfigs"}
)

// podENIKey is both the resource that a pod requests and the annotation that it gets.
const podENIKey = "vpc.amazonaws.com/pod-eni"

// cninode is the relevant part of a CNINode.
type cninode struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Features []feature         `json:"features"`
		Tags     map[string]string `json:"tags"`
	} `json:"spec"`
}

type feature struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

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

// into decodes an object into one of our types or a Kubernetes type; nil becomes nil.
func into[T any](o any) (*T, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || u == nil {
		return nil, nil
	}
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return out, nil
}

func (c *Controller) of(r schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	return c.opts.Objects.Resource(r).Namespace(namespace)
}

// get reads an object. It returns nil if the object does not exist.
func get[T any](c *Controller, r schema.GroupVersionResource, namespace, name string) (*T, error) {
	u, err := c.of(r, namespace).Get(c.ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", r.Resource, name, err)
	}
	return into[T](u)
}

// merge patches an object or one of its subresources.
func (c *Controller) merge(r schema.GroupVersionResource, namespace, name string, patch map[string]any, subresource ...string) error {
	body, err := json.Marshal(patch)
	if err == nil {
		_, err = c.of(r, namespace).Patch(c.ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, subresource...)
	}
	if err != nil {
		return fmt.Errorf("patch %s %s: %w", r.Resource, name, err)
	}
	return nil
}

type event struct {
	about                 corev1.ObjectReference
	kind, reason, message string
}

// recorded is an event that was written, which is counted when it repeats.
type recorded struct {
	name  string
	count int32
}

const eventComponent = "vpc-resource-controller"

func podRef(p *corev1.Pod) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// event writes an event, or increments the count of an identical one. If the write fails the
// event is lost, as in upstream.
func (c *Controller) event(about corev1.ObjectReference, kind, reason, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, now := event{about, kind, reason, message}, metav1.NewTime(time.Now())
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	if e, there := c.events[key]; there {
		e.count++
		c.events[key] = e
		_ = c.merge(eventsResource, namespace, e.name, map[string]any{"count": e.count, "lastTimestamp": now})
		return
	}
	e := corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x", about.Name, now.UnixNano())},
		InvolvedObject: about, Type: kind, Reason: reason, Message: message,
		Source: corev1.EventSource{Component: eventComponent}, ReportingController: eventComponent,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&e)
	delete(fields, "eventTime") // the API server rejects null
	if err == nil {
		_, err = c.of(eventsResource, namespace).Create(c.ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
	}
	if err == nil {
		c.events[key] = recorded{e.Name, 1}
	}
}
