package deploy_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"cnictl/deploy"
)

// rights are the rights of each role, one line per resource. Any change of a line
// changes what users grant.
var rights = map[string][]string{
	"aws-node": {
		"get /apis/networking.k8s.aws",
		"get /apis/networking.k8s.aws/*",
		"get list watch crd.k8s.amazonaws.com/eniconfigs",
		"get list watch core/namespaces",
		"get list watch core/nodes",
		"get list watch core/pods",
		"create list patch core/events",
		"create list patch events.k8s.io/events",
		"get list watch networking.k8s.aws/clusterpolicyendpoints",
		"get list watch networking.k8s.aws/policyendpoints",
		"get networking.k8s.aws/clusterpolicyendpoints/status",
		"get networking.k8s.aws/policyendpoints/status",
		"get list patch watch vpcresources.k8s.aws/cninodes",
	},
	"aws-node-annotate":  {"patch core/pods"},
	"cni-metrics-helper": {"list core/pods", "get core/pods/proxy"},
}

func TestRBAC_Rights(t *testing.T) {
	t.Parallel()
	for name, want := range rights {
		var have []string
		objects, err := deploy.RBAC(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetKind() == "ClusterRole" || o.GetKind() == "Role" { // both have their rules in the same field
				have = append(have, spelt(typed[rbacv1.ClusterRole](t, o))...)
			}
		}
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("%s grants\n%s\nwant\n%s", name, strings.Join(have, "\n"), strings.Join(want, "\n"))
		}
	}
}

// spelt returns the rules of a role, one line per resource.
func spelt(role *rbacv1.ClusterRole) []string {
	var out []string
	for _, r := range role.Rules {
		slices.Sort(r.Verbs)
		verbs := strings.Join(r.Verbs, " ")
		for _, url := range r.NonResourceURLs {
			out = append(out, verbs+" "+url)
		}
		for _, group := range r.APIGroups {
			if group == "" {
				group = "core"
			}
			for _, resource := range r.Resources {
				out = append(out, fmt.Sprintf("%s %s/%s", verbs, group, resource))
			}
		}
	}
	return out
}

// TestRBAC_Unused: rights marked as unused are granted, and docs/security.md has a row with their
// resource and verb. The API server's audit log shows that exactly these are unused
// (testenv/kube/kubeapi, daemon/internal/kube).
func TestRBAC_Unused(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range rights {
		granted, err := deploy.Granted(name)
		if err != nil {
			t.Fatal(err)
		}
		unused, err := deploy.Unused(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "aws-node" && len(unused) == 0 {
			t.Error("no right is marked as unused")
		}
		for _, right := range unused {
			if !slices.Contains(granted, right) {
				t.Errorf("%s: %q is marked as unused and is not granted", name, right)
			}
			if !saysUnused(string(page), right) {
				t.Errorf("%s: docs/security.md does not say that %q is unused", name, right)
			}
		}
	}
}

// saysUnused reports whether a row has the resource in its first cell and the verb in its
// last.
func saysUnused(page, right string) bool {
	verb, what, _ := strings.Cut(right, " ")
	resource, group, _ := strings.Cut(strings.TrimSuffix(what, "/*"), ".")
	if strings.HasPrefix(what, "/") {
		resource += "." + group
	}
	return slices.ContainsFunc(strings.Split(page, "\n"), func(line string) bool {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		return len(cells) == 4 && word(cells[0], resource) && word(cells[3], verb)
	})
}

// word reports whether the list in a cell has a word.
func word(cell, want string) bool {
	return slices.Contains(strings.FieldsFunc(cell, func(r rune) bool { return strings.ContainsRune(" ,`()", r) }), want)
}

// TestRBAC_Bindings: each file binds its own role to the account that the pods use.
func TestRBAC_Bindings(t *testing.T) {
	t.Parallel()
	for name, account := range map[string]string{"aws-node": "aws-node", "aws-node-annotate": "aws-node", "cni-metrics-helper": "cni-metrics-helper"} {
		objects, err := deploy.RBAC(name)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, o := range objects {
			kinds = append(kinds, o.GetKind())
			if o.GetName() != name {
				t.Errorf("rbac/%s.yaml has %s %s", name, o.GetKind(), o.GetName())
			}
			role, isBinding := strings.CutSuffix(o.GetKind(), "Binding")
			if !isBinding {
				continue
			}
			b := typed[rbacv1.ClusterRoleBinding](t, o) // a RoleBinding has the same fields
			subject := rbacv1.Subject{Kind: "ServiceAccount", Name: account, Namespace: "kube-system"}
			if b.RoleRef != (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role, Name: name}) || !slices.Equal(b.Subjects, []rbacv1.Subject{subject}) {
				t.Errorf("rbac/%s.yaml binds %+v to %+v", name, b.RoleRef, b.Subjects)
			}
		}
		want := []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
		if name == "cni-metrics-helper" {
			want = []string{"ServiceAccount", "Role", "RoleBinding"}
		}
		if name != account {
			want = want[1:] // the account already exists
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("rbac/%s.yaml has %v, want %v", name, kinds, want)
		}
	}
}

func TestRBAC_Unknown(t *testing.T) {
	t.Parallel()
	if _, err := deploy.RBAC("none"); err == nil {
		t.Error("no error about a file that is not there")
	}
}

// TestCRDs: the names in the CRDs are consistent. testenv/kube/kubeapi tests the schemas against
// an API server.
func TestCRDs(t *testing.T) {
	t.Parallel()
	crds, err := deploy.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, o := range crds {
		spec := o.Object["spec"].(map[string]any)
		names := spec["names"].(map[string]any)
		version := spec["versions"].([]any)[0].(map[string]any)
		if want := fmt.Sprintf("%s.%s", names["plural"], spec["group"]); o.GetName() != want {
			t.Errorf("the CRD of %s is named %s", want, o.GetName())
		}
		have = append(have, fmt.Sprintf("%s/%s %s %s %v", spec["group"], version["name"], names["kind"], spec["scope"], names["shortNames"]))
	}
	want := []string{
		"crd.k8s.amazonaws.com/v1alpha1 ENIConfig Cluster <nil>",
		"vpcresources.k8s.aws/v1alpha1 CNINode Cluster [cnd]",
		"vpcresources.k8s.aws/v1beta1 SecurityGroupPolicy Namespaced [sgp]",
	}
	if !slices.Equal(have, want) {
		t.Errorf("have %q\nwant %q", have, want)
	}
}
