package cluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// object lists the kinds that a cluster's user needs. Typed clients would add a dozen
// modules.
type object interface {
	corev1.Pod | corev1.Node | corev1.Service | corev1.Event | corev1.Namespace | appsv1.Deployment | appsv1.DaemonSet
}

// kindOf returns the kind and resource of a type, and whether it is namespaced.
func kindOf[T object]() (kind string, r schema.GroupVersionResource, namespaced bool) {
	core := corev1.SchemeGroupVersion
	switch any(*new(T)).(type) {
	case corev1.Pod:
		return "Pod", core.WithResource("pods"), true
	case corev1.Service:
		return "Service", core.WithResource("services"), true
	case corev1.Event:
		return "Event", core.WithResource("events"), true
	case corev1.Namespace:
		return "Namespace", core.WithResource("namespaces"), false
	case appsv1.Deployment:
		return "Deployment", appsv1.SchemeGroupVersion.WithResource("deployments"), true
	case appsv1.DaemonSet:
		return "DaemonSet", appsv1.SchemeGroupVersion.WithResource("daemonsets"), true
	default:
		return "Node", core.WithResource("nodes"), false
	}
}

func of[T object](c *Cluster, namespace string) dynamic.ResourceInterface {
	_, resource, namespaced := kindOf[T]()
	all := c.API.Objects().Resource(resource)
	if !namespaced {
		return all
	}
	return all.Namespace(namespace)
}

// Get reads an object. For cluster-scoped kinds, namespace is ignored.
func Get[T object](ctx context.Context, c *Cluster, namespace, name string) (*T, error) {
	u, err := of[T](c, namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return decode[T](u)
}

// Create creates an object and returns it as the server stores it.
func Create[T object](ctx context.Context, c *Cluster, namespace string, o *T) (*T, error) {
	kind, resource, _ := kindOf[T]()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetAPIVersion(resource.GroupVersion().String())
	u.SetKind(kind)
	answer, err := of[T](c, namespace).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create %s %s: %w", kind, u.GetName(), err)
	}
	return decode[T](answer)
}

// List returns the objects of a namespace.
func List[T object](ctx context.Context, c *Cluster, namespace string, o metav1.ListOptions) ([]T, error) {
	list, err := of[T](c, namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	out := make([]T, 0, len(list.Items))
	for i := range list.Items {
		one, err := decode[T](&list.Items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, *one)
	}
	return out, nil
}

// Delete starts the deletion of an object, which may take a while.
func Delete[T object](ctx context.Context, c *Cluster, namespace, name string) error {
	return of[T](c, namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

func decode[T object](u *unstructured.Unstructured) (*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("decode %s: %w", u.GetKind(), err)
	}
	return out, nil
}
