package deploy

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"cnictl/daemon/lazy"
)

// Granted lists what the role NAME grants, one right per line, sorted: "list pods", "patch
// cninodes.vpcresources.k8s.aws", "get /apis/networking.k8s.aws".
func Granted(name string) ([]string, error) {
	objects, err := RBAC(name)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		var role rbacv1.ClusterRole // a Role has its rules in the same field
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return nil, fmt.Errorf("%s: %w", roleFile(name), err)
		}
		for _, rule := range role.Rules {
			for _, what := range named(rule) {
				out = append(out, rights(rule.Verbs, what)...)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// named lists the resources and URLs that a rule applies to.
func named(rule rbacv1.PolicyRule) []string {
	out := slices.Clone(rule.NonResourceURLs)
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "" {
				resource += "." + group
			}
			out = append(out, resource)
		}
	}
	return out
}

func rights(verbs []string, what string) (out []string) {
	for _, verb := range verbs {
		out = append(out, verb+" "+what)
	}
	return out
}

// unused matches a role's comment about something that only upstream needs.
var unused = lazy.Regexp(`(?m)^ *# unused: ([a-z ]+) (\S+)$`)

// Unused lists what the role NAME grants only because upstream does, according to the
// role's own comments.
func Unused(name string) ([]string, error) {
	text, err := files.ReadFile(roleFile(name))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range unused().FindAllSubmatch(text, -1) {
		out = append(out, rights(strings.Fields(string(m[1])), string(m[2]))...)
	}
	slices.Sort(out)
	return out, nil
}
