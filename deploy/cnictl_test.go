package deploy_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"cnictl/deploy"
)

// cnictlRights are the rights that users of cnictl are granted, by file: in the cluster, and
// in the daemon's namespace.
var cnictlRights = map[string]struct{ cluster, namespace []string }{
	"cnictl": {
		cluster: []string{
			"get list watch apps/daemonsets",
			"get list watch core/events",
			"get list watch core/nodes",
			"get list watch core/pods",
			"get list watch crd.k8s.amazonaws.com/eniconfigs",
			"get list watch vpcresources.k8s.aws/cninodes",
			"get list watch vpcresources.k8s.aws/securitygrouppolicies",
		},
		namespace: []string{
			"create get core/pods/portforward",
			"get core/pods/log",
			"get list watch core/configmaps",
		},
	},
	"cnictl-doctor": {
		cluster: []string{
			"create authorization.k8s.io/subjectaccessreviews",
			"get admissionregistration.k8s.io/mutatingwebhookconfigurations",
			"get admissionregistration.k8s.io/validatingwebhookconfigurations",
			"get apiextensions.k8s.io/customresourcedefinitions",
			"get core/namespaces",
			"get core/services",
			"get rbac.authorization.k8s.io/clusterrolebindings",
			"get rbac.authorization.k8s.io/clusterroles",
			"list admissionregistration.k8s.io/mutatingwebhookconfigurations",
			"list admissionregistration.k8s.io/validatingwebhookconfigurations",
			"list monitoring.coreos.com/podmonitors",
			"list monitoring.coreos.com/servicemonitors",
			"list networking.k8s.aws/policyendpoints",
		},
		namespace: []string{
			"get core/configmaps",
			"get core/serviceaccounts",
			"get rbac.authorization.k8s.io/rolebindings",
			"get rbac.authorization.k8s.io/roles",
			"list core/resourcequotas",
		},
	},
	"cnictl-exec":  {namespace: []string{"create core/pods/exec"}},
	"cnictl-proxy": {namespace: []string{"get core/pods/proxy"}},
}

// cnictlObjects are the objects that the roles name if they do not grant all of a kind.
var cnictlObjects = map[string]map[string][]string{
	"cnictl": {"configmaps": {"amazon-vpc-cni"}},
	"cnictl-doctor": {
		"configmaps": {"aws-node", "kube-proxy", "kube-proxy-config"}, "serviceaccounts": {"aws-node"},
		"roles": {"eks-vpc-resource-controller-role", "eks-vpc-resource-controller-rolebinding"},
	},
}

// TestRBAC_Cnictl: the roles only read, and reach into pods only in the daemon's namespace.
// daemon/fleet/kube tests their effect with an API server.
func TestRBAC_Cnictl(t *testing.T) {
	t.Parallel()
	for name, want := range cnictlRights {
		objects, err := deploy.RBAC(name)
		if err != nil {
			t.Fatal(err)
		}
		var inCluster, inNamespace []string
		for _, o := range objects {
			if o.GetName() != name {
				t.Errorf("rbac/%s.yaml has %s %s", name, o.GetKind(), o.GetName())
			}
			switch o.GetKind() {
			case "ClusterRole":
				inCluster = append(inCluster, spelt(typed[rbacv1.ClusterRole](t, o))...)
			case "Role":
				role := typed[rbacv1.Role](t, o)
				if role.Namespace != "kube-system" {
					t.Errorf("rbac/%s.yaml grants in namespace %q", name, role.Namespace)
				}
				inNamespace = append(inNamespace, spelt(&rbacv1.ClusterRole{Rules: role.Rules})...)
				for _, r := range role.Rules {
					if want := cnictlObjects[name][r.Resources[0]]; !slices.Equal(r.ResourceNames, want) {
						t.Errorf("rbac/%s.yaml grants %s %q, want %q", name, r.Resources[0], r.ResourceNames, want)
					}
				}
			default:
				t.Errorf("rbac/%s.yaml has a %s: who is bound is not ours to say", name, o.GetKind())
			}
		}
		slices.Sort(inCluster)
		slices.Sort(inNamespace)
		if !slices.Equal(inCluster, want.cluster) || !slices.Equal(inNamespace, want.namespace) {
			t.Errorf("%s grants\n%s\nand in its namespace\n%s", name, strings.Join(inCluster, "\n"), strings.Join(inNamespace, "\n"))
		}
	}
}
