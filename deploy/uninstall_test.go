package deploy_test

import (
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"cnictl/deploy"
)

func uninstaller(t *testing.T) *appsv1.DaemonSet {
	t.Helper()
	objects, err := deploy.Uninstall()
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 1 || objects[0].GetKind() != "DaemonSet" {
		t.Fatalf("want one DaemonSet, have %d objects", len(objects))
	}
	return typed[appsv1.DaemonSet](t, objects[0])
}

// TestUninstall: a pod runs on each node that aws-node runs on, no selector of aws-node's pods
// matches it, and it has no rights in the API.
func TestUninstall(t *testing.T) {
	t.Parallel()
	set, node := uninstaller(t), podSpec(t)
	spec := set.Spec.Template.Spec
	for key, value := range set.Spec.Selector.MatchLabels {
		if set.Spec.Template.Labels[key] != value {
			t.Errorf("the pods lack the label %s=%s that selects them", key, value)
		}
	}
	if _, ok := set.Spec.Template.Labels["k8s-app"]; ok || set.Name == "aws-node" {
		t.Error("the pods look like a daemon's")
	}
	if !reflect.DeepEqual(spec.Affinity, node.Affinity) || !reflect.DeepEqual(spec.Tolerations, node.Tolerations) {
		t.Errorf("the nodes are not aws-node's: %+v %+v", spec.Affinity, spec.Tolerations)
	}
	if !spec.HostNetwork || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken || spec.ServiceAccountName != "" {
		t.Errorf("host network %t, account %q", spec.HostNetwork, spec.ServiceAccountName)
	}
}

// TestUninstall_Containers: one removes everything and exits, the other checks and keeps running,
// both with the rights and the image of aws-node.
func TestUninstall_Containers(t *testing.T) {
	t.Parallel()
	spec := uninstaller(t).Spec.Template.Spec
	first, second := container(t, spec.InitContainers, "uninstall"), container(t, spec.Containers, "left")
	if want := []string{"/app/aws-k8s-agent", "--uninstall"}; !slices.Equal(first.Command, want) {
		t.Errorf("command %q, want %q", first.Command, want)
	}
	if want := []string{"/app/aws-k8s-agent", "--uninstall", "--dry-run", "--wait"}; !slices.Equal(second.Command, want) {
		t.Errorf("command %q, want %q", second.Command, want)
	}
	node := container(t, podSpec(t).Containers, "aws-node")
	for _, c := range []corev1.Container{first, second} {
		if c.Image != node.Image || !reflect.DeepEqual(c.SecurityContext, node.SecurityContext) || len(c.Env) > 0 {
			t.Errorf("%s: image %s, rights %+v, environment %v", c.Name, c.Image, c.SecurityContext, c.Env)
		}
	}
}

// TestUninstall_Mounts: the mounts of aws-node that have something to remove, and the leases
// of egress-cni, all of them writable.
func TestUninstall_Mounts(t *testing.T) {
	t.Parallel()
	spec, node := uninstaller(t).Spec.Template.Spec, podSpec(t)
	mounts := slices.DeleteFunc(container(t, node.Containers, "aws-node").VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "log-dir" })
	volumes := slices.DeleteFunc(node.Volumes, func(v corev1.Volume) bool {
		return !slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
	})
	mounts = append(mounts, corev1.VolumeMount{Name: "cni-state-dir", MountPath: "/host/run/cni"})
	volumes = append(volumes, corev1.Volume{Name: "cni-state-dir", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/run/cni", Type: new(corev1.HostPathDirectoryOrCreate)},
	}})
	if !reflect.DeepEqual(spec.Volumes, volumes) {
		t.Errorf("volumes %+v\nwant %+v", spec.Volumes, volumes)
	}
	for _, c := range append(slices.Clone(spec.InitContainers), spec.Containers...) {
		if !reflect.DeepEqual(c.VolumeMounts, mounts) {
			t.Errorf("%s: mounts %+v\nwant %+v", c.Name, c.VolumeMounts, mounts)
		}
	}
}
