package kubeapi

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"cnictl/deploy"
)

// fieldManager owns the installed objects.
const fieldManager = "kubeapi"

// kinds are the kinds used in deploy/ and in this package: their resource, and whether they
// are namespaced.
var kinds = map[string]struct {
	resource   schema.GroupVersionResource
	namespaced bool
}{
	"CustomResourceDefinition": {resourceOf("apiextensions.k8s.io", "v1", "customresourcedefinitions"), false},
	"ClusterRole":              {resourceOf("rbac.authorization.k8s.io", "v1", "clusterroles"), false},
	"ClusterRoleBinding":       {resourceOf("rbac.authorization.k8s.io", "v1", "clusterrolebindings"), false},
	"Role":                     {resourceOf("rbac.authorization.k8s.io", "v1", "roles"), true},
	"RoleBinding":              {resourceOf("rbac.authorization.k8s.io", "v1", "rolebindings"), true},
	"ServiceAccount":           {resourceOf("", "v1", "serviceaccounts"), true},
	"Namespace":                {resourceOf("", "v1", "namespaces"), false},
	"Node":                     {resourceOf("", "v1", "nodes"), false},
	"Pod":                      {resourceOf("", "v1", "pods"), true},
	"SubjectAccessReview":      {resourceOf("authorization.k8s.io", "v1", "subjectaccessreviews"), false},
}

func resourceOf(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// of returns the client for objects of a kind.
func (s *Server) of(kind, namespace string) (dynamic.ResourceInterface, error) {
	k, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("kind %q is not one that testenv/kube/kubeapi knows", kind)
	}
	if k.namespaced {
		return s.objects.Resource(k.resource).Namespace(namespace), nil
	}
	return s.objects.Resource(k.resource), nil
}

// install adds the CRDs and roles of deploy/ to a new server and waits until
// they are in force.
func (s *Server) install(ctx context.Context) error {
	crds, err := deploy.CRDs()
	if err != nil {
		return fmt.Errorf("read definitions: %w", err)
	}
	roles, err := rolesOfUsers()
	if err != nil {
		return err
	}
	if err := s.awaitNamespace(ctx); err != nil {
		return err
	}
	for _, o := range append(crds, roles...) {
		if err := s.apply(ctx, o); err != nil {
			return err
		}
	}
	for _, o := range crds {
		if err := s.awaitCRD(ctx, o); err != nil {
			return err
		}
	}
	for name := range users {
		if err := s.awaitRights(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// awaitNamespace waits until the server has created kube-system.
func (s *Server) awaitNamespace(ctx context.Context) error {
	namespaces, err := s.of("Namespace", "")
	if err != nil {
		return err
	}
	return s.poll(ctx, "namespace "+systemNamespace, func() error {
		_, err := namespaces.Get(ctx, systemNamespace, metav1.GetOptions{})
		return err
	})
}

func (s *Server) apply(ctx context.Context, o *unstructured.Unstructured) error {
	objects, err := s.of(o.GetKind(), o.GetNamespace())
	if err != nil {
		return err
	}
	if _, err := objects.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// awaitCRD waits until objects of a CRD can be listed, in all versions.
func (s *Server) awaitCRD(ctx context.Context, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)["name"].(string)
		err := s.poll(ctx, plural, func() error {
			_, err := s.objects.Resource(resourceOf(group, version, plural)).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitRights waits until the authorizer, which watches roles separately, grants a user
// its rights.
func (s *Server) awaitRights(ctx context.Context, name string) error {
	reviews, err := s.of("SubjectAccessReview", "")
	if err != nil {
		return err
	}
	attributes := map[string]any{"verb": users[name].last.verb, "resource": users[name].last.resource, "namespace": systemNamespace}
	return s.poll(ctx, "rights of "+name, func() error {
		review := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1",
			"kind":       "SubjectAccessReview",
			"spec":       map[string]any{"user": userName(name), "resourceAttributes": attributes},
		}}
		answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !allowed {
			return errors.New("not allowed yet")
		}
		return nil
	})
}
