package fleetsim

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// access is a requested operation: a verb on "pods" or "pods/log" in an API group, in a
// namespace or everywhere, on one object or on any.
type access struct{ verb, group, resource, namespace, name string }

// grant holds the rules of a role and the namespace they apply to, "" for everywhere.
type grant struct {
	namespace string
	rules     []rbacv1.PolicyRule
}

// allows reports whether the grant allows an operation.
func (g grant) allows(a access) bool {
	if g.namespace != "" && g.namespace != a.namespace {
		return false
	}
	one := func(list []string, word string) bool {
		return slices.Contains(list, word) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(g.rules, func(r rbacv1.PolicyRule) bool {
		return one(r.Verbs, a.verb) && one(r.APIGroups, a.group) && one(r.Resources, a.resource) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.name))
	})
}

// grants reads the Roles and ClusterRoles among objects.
func grants(objects []*unstructured.Unstructured) ([]grant, error) {
	var out []grant
	for _, o := range objects {
		if kind := o.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		var role rbacv1.Role // a ClusterRole has its rules in the same field
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return nil, fmt.Errorf("read role %s: %w", o.GetName(), err)
		}
		out = append(out, grant{role.Namespace, role.Rules})
	}
	return out, nil
}
