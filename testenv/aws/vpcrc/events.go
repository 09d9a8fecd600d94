package vpcrc

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

type eventKey struct {
	about                 corev1.ObjectReference
	kind, reason, message string
}

type recorded struct {
	name  string
	count int32
}

// nodeRef refers to a Node as most of upstream's events do, with the node's name as the
// UID. Some events have the real UID.
func nodeRef(name string) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "Node", Name: name, UID: types.UID(name)}
}

func realNodeRef(n *corev1.Node) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "Node", Name: n.Name, UID: n.UID}
}

func podRef(p *corev1.Pod) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// event writes an event, or increments the count of an identical one. If the write fails the
// event is lost, as in upstream.
func (r *run) event(ctx context.Context, about corev1.ObjectReference, kind, reason, message string) {
	if err := r.api.record(ctx, eventKey{about, kind, reason, message}); err != nil && ctx.Err() == nil {
		r.log.Warn("event lost", "reason", reason, "object", about.Name, "error", err)
	}
}

func (a *api) record(ctx context.Context, k eventKey) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := metav1.NewTime(time.Now())
	namespace := k.about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	if e, there := a.events[k]; there {
		e.count++
		a.events[k] = e
		return a.merge(ctx, eventsResource, namespace, e.name, map[string]any{"count": e.count, "lastTimestamp": now})
	}
	e := corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%x", k.about.Name, now.UnixNano())},
		InvolvedObject: k.about, Type: k.kind, Reason: k.reason, Message: k.message,
		Source: corev1.EventSource{Component: eventComponent}, ReportingController: eventComponent,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	delete(fields, "eventTime") // the API server rejects null
	if _, err := a.of(eventsResource, namespace).Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create event: %w", err)
	}
	a.events[k] = recorded{e.Name, 1}
	return nil
}
