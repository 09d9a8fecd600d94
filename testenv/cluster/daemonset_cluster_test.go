package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"cnictl/daemon/fleet/document"
	"cnictl/deploy"
	"cnictl/testenv"
	"cnictl/testenv/cluster"
	"cnictl/testenv/vpc"
)

const systemNamespace = "kube-system"

// images are the archives that make images packs, beside the programs.
func images(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, name := range []string{"aws-vpc-cni-init.tar", "aws-vpc-cni.tar"} {
		file := filepath.Join(os.Getenv("CNI_TEST_BIN"), "..", "dist", name)
		if _, err := os.Stat(file); err != nil {
			testenv.Missing(t, "kube", err.Error(), "sudo make test LAYERS=cluster")
		}
		out = append(out, file)
	}
	return out
}

// daemonSet is the manifest's, for one machine, with what a cluster on EC2 has of itself:
// a token of the ServiceAccount and the way to AWS.
func daemonSet(l *lab, m *cluster.Machine) *appsv1.DaemonSet {
	l.Helper()
	manifest, err := deploy.Manifest()
	l.check(err)
	set := &appsv1.DaemonSet{}
	for _, o := range manifest {
		if o.GetKind() == "DaemonSet" {
			l.check(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, set))
		}
	}
	kubeconfig, err := m.CNIKubeconfig(l.context())
	l.check(err)
	spec := &set.Spec.Template.Spec
	spec.NodeSelector = map[string]string{corev1.LabelHostname: m.Name}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "kubeconfig", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: kubeconfig},
	}})
	// Without the network policy agent, whose image is AWS's.
	spec.Containers = slices.DeleteFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == "aws-eks-nodeagent" })
	c := &spec.Containers[0]
	c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "NETWORK_POLICY_ENFORCING_MODE" })
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "kubeconfig", MountPath: "/kubeconfig", ReadOnly: true})
	c.Env = append(c.Env,
		corev1.EnvVar{Name: "KUBECONFIG", Value: "/kubeconfig"},
		corev1.EnvVar{Name: "AWS_ENDPOINT_URL_EC2", Value: "http://" + vpc.EC2.String()},
	)
	return set
}

// TestDaemonSet: the manifest with the images as they ship, run by kubelet, makes a node
// Ready and gives pods addresses, and survives the end of its daemon.
func TestDaemonSet(t *testing.T) {
	l := requireCluster(t)
	archives := images(t)
	m, err := l.c.Add(l.context(), cluster.NodeOptions{})
	l.check(err)
	l.check(m.Import(archives...))
	set, err := cluster.Create(l.context(), l.c, systemNamespace, daemonSet(l, m))
	l.check(err)
	t.Cleanup(func() {
		if err := cluster.Delete[appsv1.DaemonSet](context.WithoutCancel(t.Context()), l.c, systemNamespace, set.Name); err != nil {
			t.Error(err)
		}
	})
	l.systemReady(0)
	l.check(m.AwaitReady(l.context()))
	pods := l.run(pod("under-daemonset", m), pod("elsewhere", l.c.Machines[0]))
	l.reachesBothWays(pods[0], pods[1])

	pid, err := m.Output("pidof", "aws-k8s-agent")
	l.check(err)
	_, err = m.Output("kill", "-KILL", strings.TrimSpace(pid))
	l.check(err)
	l.reachesBothWays(pods[0], pods[1])
	l.systemReady(1)
	l.reachesBothWays(l.run(pod("after-the-daemon", m))[0], pods[1])
	l.examine(m)
}

// examine runs the doctor from outside the cluster, with the rights that deploy/rbac grants:
// it finds nothing wrong with the node, and a command that it runs in the container reads
// what only the node sees. Until that right is granted the doctor says what it was denied.
func (l *lab) examine(m *cluster.Machine) {
	l.Helper()
	const user = "somebody-with-exec"
	o := l.operator(user, "CNICTL_NODES="+m.Name, "CNICTL_DAEMONSET_SELECTOR=k8s-app=aws-node")
	examined := func(code int, kernel map[string]string) error {
		e := o.run("doctor", m.Name, "--via", "exec", "--once", "-o", "json")
		var r document.DoctorReport
		if err := json.Unmarshal([]byte(e.out), &r); err != nil {
			return fmt.Errorf("exit %d: %w: %s", e.code, err, e.said)
		}
		unread := map[string]string{}
		for _, s := range r.NotChecked {
			if slices.Contains(onlyOnNode, s.Source) {
				unread[s.Source] = s.Reason
			}
		}
		if e.code != code || len(r.Findings) != 0 || !maps.Equal(unread, kernel) {
			return fmt.Errorf("exit %d, want %d, and unread %v, want %v: %s%s", e.code, code, unread, kernel, e.out, e.said)
		}
		return nil
	}
	l.grantRoles(user, "cnictl", "cnictl-doctor")
	denied := map[string]string{}
	for _, s := range onlyOnNode {
		denied[s] = "exec: forbidden"
	}
	l.check(examined(7, denied))
	l.grantRoles(user, "cnictl-exec")
	l.await("the doctor to read the node", func() error { return examined(0, nil) })
}

// onlyOnNode are sources that the DaemonSet's container sees and the API server does not.
var onlyOnNode = []string{
	"imds", "ckpt", "log.plugin", "kern.link", "kern.rule", "kern.route", "kern.ipt", "kern.sysctl", "host.cni", "host.listen", "host.res",
}

// systemReady waits until the CNI's pod is Ready after a number of restarts.
func (l *lab) systemReady(restarts int32) {
	l.Helper()
	l.await("aws-node to be Ready", func() error {
		pods, err := cluster.List[corev1.Pod](l.context(), l.c, systemNamespace, metav1.ListOptions{LabelSelector: "k8s-app=aws-node"})
		if err != nil {
			return err
		}
		if len(pods) != 1 {
			return fmt.Errorf("%d pods", len(pods))
		}
		status := pods[0].Status
		for _, s := range status.ContainerStatuses {
			if s.Ready && s.RestartCount >= restarts {
				return nil
			}
		}
		return fmt.Errorf("%s: %+v %+v", status.Phase, status.InitContainerStatuses, status.ContainerStatuses)
	})
}
