package cluster_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/text/tour"
)

// TestRights: with seccomp's default profile and the admission policy, the daemon annotates pods
// with the token that kubelet gives it; the uninstaller has the profile, too.
func TestRights(t *testing.T) {
	l := requireCluster(t)
	for _, p := range l.run(pod("annotated-a", l.c.Machines[0]), pod("annotated-b", l.c.Machines[1])) {
		testenv.EventuallyErr(l, "the annotation of "+p.Name, func() error {
			now, err := cluster.Get[corev1.Pod](l.Context(), l.c, namespace, p.Name)
			if err == nil && now.Annotations["vpc.amazonaws.com/pod-ips"] != p.Status.PodIP {
				err = fmt.Errorf("annotations %v", now.Annotations)
			}
			return err
		})
		l.delete(p.Name)
	}
	if out := l.kubectl("", "get", "validatingadmissionpolicybinding", "aws-node", "--output", "name"); out == "" {
		t.Error("no admission policy")
	}
	l.filtered()

	l.helm("uninstall", cluster.Release, "--wait")
	text, err := os.ReadFile(tour.Path(t, "deploy/uninstall.yaml"))
	l.check(err)
	manifest := strings.ReplaceAll(string(text), "registry.invalid/", "docker.io/")
	l.kubectl(manifest, "apply", "--filename", "-")
	l.kubectl("", "rollout", "status", "daemonset/aws-node-uninstall", "--timeout", testenv.Left(l).String())
	l.filtered()
	l.kubectl(manifest, "delete", "--wait", "--filename", "-")
	l.helm("install", cluster.Release, l.c.Chart(), "--values", l.c.Values)
	l.kubectl("", "rollout", "status", "daemonset/aws-node", "--timeout", testenv.Left(l).String())
}

// filtered: the daemon's program runs with a seccomp filter on each machine.
func (l *lab) filtered() {
	l.Helper()
	for _, m := range l.c.Machines[:3] {
		testenv.EventuallyErr(l, "the daemon's program on "+m.Name, func() error {
			pid, err := m.Process("aws-k8s-agent")
			if err != nil {
				return err
			}
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if mode := regexp.MustCompile(`(?m)^Seccomp:\s+(\d)$`).FindSubmatch(status); err == nil && (mode == nil || string(mode[1]) != "2") {
				err = fmt.Errorf("no seccomp filter: %s", mode)
			}
			return err
		})
	}
}
