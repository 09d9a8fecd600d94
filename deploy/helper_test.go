package deploy_test

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"cnictl/daemon/config"
	"cnictl/deploy"
)

// helper returns the metrics helper's Deployment.
func helper(t *testing.T) *appsv1.Deployment {
	t.Helper()
	objects, err := deploy.MetricsHelper()
	return only[appsv1.Deployment](t, "Deployment", objects, err)
}

// TestHelper: one pod, which its Deployment selects, matching upstream's cni-metrics-helper
// v1.23.1.
func TestHelper(t *testing.T) {
	t.Parallel()
	d := helper(t)
	if d.Spec.Replicas == nil || *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Error("two pods may run at once, and both would publish the whole cluster's sums")
	}
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("the pods lack the label %s=%s that selects them", key, value)
		}
	}
	if d.Spec.Template.Labels["k8s-app"] == "aws-node" {
		t.Error("the helper would take itself for a node's daemon")
	}
	c := container(t, d.Spec.Template.Spec.Containers, "cni-metrics-helper")
	if c.LivenessProbe != nil || c.ReadinessProbe != nil || len(c.Ports) > 0 {
		t.Errorf("ports %v or probes, of which upstream has none", c.Ports)
	}
}

// TestHelper_Environment: upstream's variables and values, all of which the helper reads and
// accepts without a warning.
func TestHelper_Environment(t *testing.T) {
	t.Parallel()
	rows := map[string]config.Row{}
	for _, row := range config.Table() {
		rows[row.Name] = row
	}
	env := map[string]string{}
	for _, e := range container(t, helper(t).Spec.Template.Spec.Containers, "cni-metrics-helper").Env {
		if row := rows[e.Name]; !row.ReadBy(config.Helper) {
			t.Errorf("%s is set, and the table does not say that the helper reads it", e.Name)
		}
		if _, twice := env[e.Name]; twice || e.ValueFrom != nil {
			t.Errorf("%s is set twice or is no plain value", e.Name)
		}
		env[e.Name] = e.Value
	}
	want := map[string]string{"AWS_CLUSTER_ID": "", "AWS_VPC_K8S_CNI_LOGLEVEL": "INFO", "USE_CLOUDWATCH": "true", "USE_PROMETHEUS": "false"}
	if !maps.Equal(env, want) {
		t.Errorf("environment %v, want %v", env, want)
	}
	_, problems := config.Load(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	for _, p := range problems {
		if _, set := env[p.Variable]; set {
			t.Errorf("%+v", p)
		}
	}
}

// TestHelper_Rights: no rights on the node, and in the API only those of its role.
func TestHelper_Rights(t *testing.T) {
	t.Parallel()
	d := helper(t)
	spec := d.Spec.Template.Spec
	if spec.HostNetwork || spec.HostPID || len(spec.Volumes) > 0 {
		t.Error("the pod has something of the node")
	}
	sc := container(t, spec.Containers, "cni-metrics-helper").SecurityContext
	if sc == nil || sc.Capabilities == nil || !slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(sc.Capabilities.Add) > 0 || sc.Privileged != nil {
		t.Fatalf("the helper has capabilities: %+v", sc)
	}
	for what, is := range map[string]*bool{"runAsNonRoot": sc.RunAsNonRoot, "readOnlyRootFilesystem": sc.ReadOnlyRootFilesystem} {
		if is == nil || !*is {
			t.Errorf("%s is not true", what)
		}
	}
	if sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation || sc.RunAsUser == nil || *sc.RunAsUser == 0 {
		t.Errorf("the helper can become root: %+v", sc)
	}
	objects, err := deploy.RBAC("cni-metrics-helper")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() == "ServiceAccount" && (o.GetName() != spec.ServiceAccountName || o.GetNamespace() != d.Namespace) {
			t.Errorf("the pod's account is %s/%s, and the role is given to %s/%s", d.Namespace, spec.ServiceAccountName, o.GetNamespace(), o.GetName())
		}
	}
}
