package deploy_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"cnictl/daemon/config"
	"cnictl/deploy"
)

// typed decodes an object into its type and rejects unknown members.
func typed[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	data, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(out); err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return out
}

// only returns the one object of a kind.
func only[T any](t *testing.T, kind string, objects []*unstructured.Unstructured, err error) *T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
	if len(objects) != 1 {
		t.Fatalf("want one %s, have %d", kind, len(objects))
	}
	return typed[T](t, objects[0])
}

func daemonSet(t *testing.T) *appsv1.DaemonSet {
	t.Helper()
	objects, err := deploy.Manifest()
	return only[appsv1.DaemonSet](t, "DaemonSet", objects, err)
}

func podSpec(t *testing.T) corev1.PodSpec {
	t.Helper()
	set := daemonSet(t)
	for key, value := range set.Spec.Selector.MatchLabels {
		if set.Spec.Template.Labels[key] != value {
			t.Errorf("the pods lack the label %s=%s that selects them", key, value)
		}
	}
	return set.Spec.Template.Spec
}

// TestManifest_Labels: other tools find the CNI by these labels, on the DaemonSet and on its pods.
func TestManifest_Labels(t *testing.T) {
	t.Parallel()
	set := daemonSet(t)
	for key, want := range map[string]string{"app.kubernetes.io/name": "aws-node", "app.kubernetes.io/instance": "aws-vpc-cni", "k8s-app": "aws-node"} {
		if on, pods := set.Labels[key], set.Spec.Template.Labels[key]; on != want || pods != want {
			t.Errorf("label %s is %q, and %q on pods, want %q", key, on, pods, want)
		}
	}
}

func container(t *testing.T, of []corev1.Container, name string) corev1.Container {
	t.Helper()
	i := slices.IndexFunc(of, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no container %s", name)
	}
	return of[i]
}

// TestManifest_Environment: the manifest has the variables of the table, with the values that the
// table gives for the manifest.
func TestManifest_Environment(t *testing.T) {
	t.Parallel()
	spec := podSpec(t)
	for _, c := range []struct {
		container corev1.Container
		readers   []config.Reader
	}{
		{container(t, spec.Containers, "aws-node"), []config.Reader{config.Entrypoint, config.Agent, config.Plugin, config.Egress, config.SDK}},
		{container(t, spec.InitContainers, "aws-vpc-cni-init"), []config.Reader{config.Init}},
	} {
		env := map[string]corev1.EnvVar{}
		for _, e := range c.container.Env {
			if _, twice := env[e.Name]; twice {
				t.Errorf("%s: %s is set twice", c.container.Name, e.Name)
			}
			env[e.Name] = e
		}
		for _, row := range config.Table() {
			e, set := env[row.Name]
			delete(env, row.Name)
			read := slices.ContainsFunc(c.readers, row.ReadBy)
			switch {
			case set && !read:
				t.Errorf("%s: %s is set and read by nothing there", c.container.Name, row.Name)
			case set:
				checkValue(t, row, e)
			case read && row.Manifest != "":
				t.Errorf("%s: %s is not set, the table says %q", c.container.Name, row.Name, row.Manifest)
			}
		}
		for name := range env {
			t.Errorf("%s: %s is no variable of the table", c.container.Name, name)
		}
	}
}

// checkValue: the variable has the manifest's value or else the default, so that users see it and
// can change it. A value in parentheses describes where the value comes from.
func checkValue(t *testing.T, row config.Row, e corev1.EnvVar) {
	t.Helper()
	want := row.Manifest
	if want == "" {
		want = row.Default
	}
	switch {
	case want == "(downward API)":
		if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
			t.Errorf("%s does not come from the downward API", row.Name)
		}
	case want == "(image version)":
		image := container(t, podSpec(t).Containers, "aws-node").Image
		if _, tag, _ := strings.Cut(image, ":"); e.Value != tag {
			t.Errorf("%s is %q and the image is %s", row.Name, e.Value, image)
		}
	case e.Value != want || e.ValueFrom != nil:
		t.Errorf("%s is %q, the table says %q", row.Name, e.Value, want)
	}
}

// TestManifest_Configuration: the daemon accepts the manifest's environment without a
// warning.
func TestManifest_Configuration(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	for _, e := range container(t, podSpec(t).Containers, "aws-node").Env {
		env[e.Name] = e.Value
	}
	_, problems := config.Load(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	for _, p := range problems {
		t.Errorf("%+v", p)
	}
}

func TestManifest_Rights(t *testing.T) {
	t.Parallel()
	spec := podSpec(t)
	capabilities, err := deploy.Capabilities()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"NET_ADMIN", "NET_RAW", "DAC_OVERRIDE"}; !slices.Equal(capabilities, want) {
		t.Errorf("capabilities %v, want %v", capabilities, want)
	}
	sc := container(t, spec.Containers, "aws-node").SecurityContext
	if !slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) || sc.Privileged != nil || *sc.AllowPrivilegeEscalation || !*sc.ReadOnlyRootFilesystem {
		t.Errorf("aws-node may more than its capabilities: %+v", sc)
	}
	if spec.ServiceAccountName != "aws-node" || !spec.HostNetwork || spec.PriorityClassName != "system-node-critical" {
		t.Errorf("account %q, host network %v, priority %q", spec.ServiceAccountName, spec.HostNetwork, spec.PriorityClassName)
	}
}

// TestManifest_Mounts: host path → mount, as the daemon, the plugin and other tools
// expect them.
func TestManifest_Mounts(t *testing.T) {
	t.Parallel()
	spec := podSpec(t)
	host := map[string]string{}
	for _, v := range spec.Volumes {
		host[v.Name] = v.HostPath.Path
	}
	want := []string{
		"/opt/cni/bin → /host/opt/cni/bin", "/etc/cni/net.d → /host/etc/cni/net.d",
		"/var/log/aws-routed-eni → /host/var/log/aws-routed-eni",
		"/var/run/aws-node → /var/run/aws-node", "/run/xtables.lock → /run/xtables.lock",
	}
	var have []string
	for _, m := range container(t, spec.Containers, "aws-node").VolumeMounts {
		line := host[m.Name] + " → " + m.MountPath
		if m.ReadOnly {
			line += ", read-only"
		}
		have = append(have, line)
	}
	if !slices.Equal(have, want) {
		t.Errorf("have %q\nwant %q", have, want)
	}
}

// TestManifest_WritesBelowMounts: the root of both containers may be read-only, so every path that
// the settings describe as written lies below a writable mount.
func TestManifest_WritesBelowMounts(t *testing.T) {
	t.Parallel()
	spec := podSpec(t)
	for _, row := range []struct {
		container corev1.Container
		variables []string
	}{
		{container(t, spec.InitContainers, "aws-vpc-cni-init"), []string{"HOST_CNI_BIN_PATH"}},
		{container(t, spec.Containers, "aws-node"), []string{"HOST_CNI_BIN_PATH", "HOST_CNI_CONFDIR_PATH", "AWS_VPC_K8S_CNI_LOG_FILE", "AWS_VPC_K8S_CNI_BACKING_STORE"}},
	} {
		for _, name := range row.variables {
			i := slices.IndexFunc(config.Table(), func(r config.Row) bool { return r.Name == name })
			if i < 0 {
				t.Errorf("no variable %s", name)
				continue
			}
			path := config.Table()[i].Default
			if !slices.ContainsFunc(row.container.VolumeMounts, func(m corev1.VolumeMount) bool {
				return !m.ReadOnly && (path == m.MountPath || strings.HasPrefix(path, m.MountPath+"/"))
			}) {
				t.Errorf("%s: %s is %s, below no mount that can be written", row.container.Name, name, path)
			}
		}
	}
}

// TestManifest_BothContainers: variables that both containers read have the same values in both.
func TestManifest_BothContainers(t *testing.T) {
	t.Parallel()
	spec := podSpec(t)
	value := func(c corev1.Container, name string) string {
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
		if i < 0 {
			return "not set"
		}
		return c.Env[i].Value
	}
	for _, name := range []string{"ENABLE_IPv6", "ENABLE_V6_EGRESS"} {
		first, second := value(container(t, spec.InitContainers, "aws-vpc-cni-init"), name), value(container(t, spec.Containers, "aws-node"), name)
		if first != second {
			t.Errorf("%s is %s in the init container and %s in the other", name, first, second)
		}
	}
}

// TestManifest_Grace: the 9 s that the entrypoint gives the daemon to stop fit the pod's grace period.
func TestManifest_Grace(t *testing.T) {
	t.Parallel()
	if s := podSpec(t).TerminationGracePeriodSeconds; s == nil || *s != 10 {
		t.Errorf("terminationGracePeriodSeconds is %v, want 10", s)
	}
}

// TestManifest_Probes: the probes match those of upstream's manifest v1.23.1. A full node
// stays alive.
func TestManifest_Probes(t *testing.T) {
	t.Parallel()
	c := container(t, podSpec(t).Containers, "aws-node")
	command := []string{"/app/grpc-health-probe", "-addr=unix:///var/run/aws-node/ipamd.sock", "-connect-timeout=5s", "-rpc-timeout=5s"}
	for _, p := range []struct {
		probe *corev1.Probe
		delay int32
	}{{c.LivenessProbe, 60}, {c.ReadinessProbe, 1}} {
		if !slices.Equal(p.probe.Exec.Command, command) || p.probe.InitialDelaySeconds != p.delay || p.probe.TimeoutSeconds != 10 || p.probe.PeriodSeconds != 0 {
			t.Errorf("probe %+v", p.probe)
		}
	}
	if len(c.Ports) != 1 || c.Ports[0].Name != "metrics" || c.Ports[0].ContainerPort != 61678 {
		t.Errorf("ports %+v", c.Ports)
	}
}
