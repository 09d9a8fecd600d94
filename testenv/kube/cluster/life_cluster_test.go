package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/node"
)

// TestDelete_LeavesNothing: pods with host ports and limits have both while they run: a port of the
// node leads to its pod, from outside and from another node's pod. Deleted, they leave no link, route,
// rule, namespace, chain or allocation on their node, and nothing answers at their ports.
func TestDelete_LeavesNothing(t *testing.T) {
	l := requireCluster(t)
	m := l.c.Machines[1]
	client := l.run(pod("gone-client", l.c.Machines[0]))[0]
	var pods []*corev1.Pod
	for i := range 4 {
		pods = append(pods, pod(fmt.Sprintf("gone-%d", i), m, func(p *corev1.Pod) {
			p.Annotations = map[string]string{"kubernetes.io/ingress-bandwidth": "1G", "kubernetes.io/egress-bandwidth": "1G"}
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 7, HostPort: int32(7100 + i)}}
		}))
	}
	pods = l.run(pods...)
	for _, p := range pods {
		for what, lines := range l.tracesOf(m, p) {
			if len(lines) == 0 {
				t.Errorf("no %s of pod %s while it runs: what is looked for later shows nothing", what, p.Name)
			}
		}
	}
	if links := l.limits(m); links == "" {
		t.Error("no link of the bandwidth plugin while pods with limits run")
	}
	ports := map[netip.AddrPort]*corev1.Pod{}
	for i, p := range pods {
		at := netip.AddrPortFrom(m.Instance.PrimaryIP, uint16(7100+i))
		ports[at] = p
		testenv.EventuallyErr(l, "the pod to answer at the host's port", func() error {
			name, err := l.askFromOutside(at)
			if err == nil && name != p.Name {
				err = fmt.Errorf("%q answers", name)
			}
			return err
		})
		if _, name := l.reach(client, "tcp", at.String()); name != p.Name {
			t.Errorf("%q answers a pod of another node at %s, want %q", name, at, p.Name)
		}
	}
	l.delete(names(pods)...)
	for at, p := range ports {
		if name, err := l.askFromOutside(at); err == nil {
			t.Errorf("%q still answers at %s after pod %s", name, at, p.Name)
		}
	}
	for _, p := range pods {
		for what, lines := range l.tracesOf(m, p) {
			if len(lines) > 0 {
				t.Errorf("%s of pod %s after it: %q", what, p.Name, lines)
			}
		}
	}
	left, err := m.Leftovers(l.Context())
	l.check(err)
	for _, what := range left {
		t.Errorf("left on the node: %s", what)
	}
	if links := l.limits(m); links != "" {
		t.Errorf("left of the limits:\n%s", links)
	}
	nat, err := m.Output("iptables-save", "-t", "nat")
	l.check(err)
	for line := range strings.Lines(nat) {
		if strings.Contains(line, "CNI-DN-") {
			t.Errorf("left of the host ports: %s", line)
		}
	}
}

// limits returns the machine's links of the bandwidth plugin, which are named by sandbox.
func (l *lab) limits(m *cluster.Machine) string {
	l.Helper()
	links, err := m.Output("ip", "-o", "link")
	l.check(err)
	return strings.Join(regexp.MustCompile(`(?m)^\d+: bwp.*$`).FindAllString(links, -1), "\n")
}

// tracesOf returns whatever on the node mentions a pod's address, by kind.
func (l *lab) tracesOf(m *cluster.Machine, p *corev1.Pod) map[string][]string {
	l.Helper()
	address := regexp.MustCompile(`\b` + regexp.QuoteMeta(p.Status.PodIP) + `\b`)
	traces := map[string][]string{}
	for what, command := range map[string][]string{
		"rule":  {"ip", "-o", "rule"},
		"route": {"ip", "-o", "route", "show", "table", "all"},
		"NAT":   {"iptables-save", "-t", "nat"},
	} {
		text, err := m.Output(command[0], command[1:]...)
		l.check(err)
		traces[what] = nil
		for line := range strings.Lines(text) {
			if address.MatchString(line) {
				traces[what] = append(traces[what], strings.TrimSpace(line))
			}
		}
	}
	return traces
}

// restart describes a part of a node that can be stopped and started again.
type restart struct {
	name  string
	end   func(context.Context, *cluster.Machine) error
	begin func(context.Context, *cluster.Machine) error
}

func restarts() []restart {
	stop := func(name string, s syscall.Signal) func(context.Context, *cluster.Machine) error {
		return func(ctx context.Context, m *cluster.Machine) error { return m.Stop(ctx, name, s) }
	}
	kubelet, containerd := (*cluster.Machine).StartKubelet, (*cluster.Machine).StartContainerd
	flip := func(f func(*cluster.Machine, context.Context) error) func(context.Context, *cluster.Machine) error {
		return func(ctx context.Context, m *cluster.Machine) error { return f(m, ctx) }
	}
	return []restart{
		{"kubelet_TERM", stop("kubelet", syscall.SIGTERM), flip(kubelet)},
		{"kubelet_KILL", stop("kubelet", syscall.SIGKILL), flip(kubelet)},
		{"containerd_TERM", stop("containerd", syscall.SIGTERM), flip(containerd)},
		{"containerd_KILL", stop("containerd", syscall.SIGKILL), flip(containerd)},
		{"CNI_TERM", flip((*cluster.Machine).StopCNI), flip((*cluster.Machine).StartCNI)},
		{"CNI_KILL", flip(holdDaemon), flip(releaseDaemon)},
	}
}

// holdDaemon kills the daemon and stops its entrypoint, which therefore does not notice: the
// pod exists, but nothing listens in it.
func holdDaemon(m *cluster.Machine, _ context.Context) error {
	entrypoint, err := m.Process(node.EntrypointBinary)
	if err == nil {
		err = unix.Kill(entrypoint, unix.SIGSTOP)
	}
	if err == nil {
		_, err = m.KillDaemon()
	}
	return err
}

// releaseDaemon lets the entrypoint end, and waits for the container with which kubelet
// replaces it.
func releaseDaemon(m *cluster.Machine, ctx context.Context) error {
	entrypoint, err := m.Process(node.EntrypointBinary)
	if err == nil {
		err = unix.Kill(entrypoint, unix.SIGCONT)
	}
	if err != nil {
		return err
	}
	return m.AwaitDaemon(ctx, 0)
}

// TestRestart_IsHarmless: running pods keep their addresses and stay reachable throughout,
// and new ones start.
func TestRestart_IsHarmless(t *testing.T) {
	l := requireCluster(t)
	m := l.c.Machines[0]
	pods := l.run(pod("stays", m), pod("peer", l.c.Machines[1]))
	stays, peer := pods[0], pods[1]
	for _, r := range restarts() {
		t.Run(r.name, func(t *testing.T) {
			l := &lab{T: t, c: l.c}
			t.Cleanup(l.explain)
			l.check(r.end(l.Context(), m))
			l.reachesBothWays(stays, peer) // while the part is stopped
			// It waits for the stopped part, and must not be given up.
			name := "new-" + strings.ToLower(strings.ReplaceAll(r.name, "_", "-"))
			_, err := cluster.Create(l.Context(), l.c, namespace, pod(name, m))
			l.check(err)
			t.Cleanup(func() { l.delete(name) })
			l.check(r.begin(l.Context(), m))
			l.reachesBothWays(l.running(name), peer)
			l.reachesBothWays(stays, peer)
			now := l.running(stays.Name)
			if now.Status.PodIP != stays.Status.PodIP || now.Status.ContainerStatuses[0].RestartCount != 0 {
				t.Errorf("the pod has %s and %d restarts, want %s and none", now.Status.PodIP, now.Status.ContainerStatuses[0].RestartCount, stays.Status.PodIP)
			}
		})
	}
}

func (l *lab) reachesBothWays(a, b *corev1.Pod) {
	l.Helper()
	for _, pair := range [][2]*corev1.Pod{{a, b}, {b, a}} {
		if source, name := l.reach(pair[0], "tcp", lineOf(pair[1])); name != pair[1].Name || source.Addr().String() != pair[0].Status.PodIP {
			l.Errorf("%s answers %s, and saw it as %s", name, pair[0].Name, source)
		}
	}
}

// TestReady_WithTheConflist: a node is not Ready before its CNI serves, and stays so with
// a CNI that cannot start, which reports why. A CNI that serves introspection only on a Unix
// socket is read by exec.
func TestReady_WithTheConflist(t *testing.T) {
	l := requireCluster(t)
	m, err := l.c.Add(l.Context(), cluster.NodeOptions{})
	l.check(err)
	notReady := func(when string) {
		t.Helper()
		testenv.EventuallyErr(l, "the node not to be Ready for its network "+when, func() error {
			ready, why, err := m.Ready(l.Context())
			if err == nil && (ready || !strings.Contains(why, "cni plugin not initialized")) {
				err = fmt.Errorf("ready: %v, %s", ready, why)
			}
			return err
		})
	}
	notReady("without a CNI")

	remove := l.variant(m, "with-neither-family", map[string]string{"ENABLE_IPv4": "false"})
	testenv.EventuallyErr(l, "the entrypoint to end with status 1 and to say why", func() error {
		p, err := m.CNIPod(l.Context())
		if err != nil {
			return err
		}
		for _, s := range p.Status.ContainerStatuses {
			if ended := s.LastTerminationState.Terminated; ended != nil && ended.ExitCode == 1 && s.RestartCount > 0 {
				said, err := l.log(p)
				if err == nil && !strings.Contains(said, "ENABLE_IPv4") {
					err = fmt.Errorf("it says %q", said)
				}
				return err
			}
		}
		return fmt.Errorf("%+v", p.Status.ContainerStatuses)
	})
	notReady("with a CNI that cannot start")
	remove()

	l.grantRoles(execUser, "cnictl", "cnictl-exec")
	remove = l.variant(m, "on-a-socket", map[string]string{"INTROSPECTION_BIND_ADDRESS": "unix:/var/run/aws-node/introspection.sock"})
	l.check(m.AwaitCNI(testenv.Context(l)))
	l.check(m.AwaitReady(testenv.Context(l)))
	l.readsByExec(m)
	remove()

	l.check(m.StartCNI(l.Context()))
	l.run(pod("first-of-node", m))
}

// variant runs the CNI's DaemonSet with a different environment on a machine that the DaemonSet
// itself excludes, until the returned function is called.
func (l *lab) variant(m *cluster.Machine, name string, env map[string]string) (remove func()) {
	l.Helper()
	set, err := cluster.Get[appsv1.DaemonSet](l.Context(), l.c, cluster.SystemNamespace, "aws-node")
	l.check(err)
	set.ObjectMeta = metav1.ObjectMeta{Name: set.Name + "-" + name}
	template := &set.Spec.Template
	template.Labels["variant"] = name
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"variant": name}}
	template.Spec.Affinity = nil
	template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: m.Name}
	c := &template.Spec.Containers[0]
	for name, value := range env {
		c.Env = append(slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name }), corev1.EnvVar{Name: name, Value: value})
	}
	_, err = cluster.Create(l.Context(), l.c, cluster.SystemNamespace, set)
	l.check(err)
	remove = sync.OnceFunc(func() {
		ctx := context.WithoutCancel(l.Context())
		err := cluster.Delete[appsv1.DaemonSet](ctx, l.c, cluster.SystemNamespace, set.Name)
		if err := errors.Join(err, m.StopCNI(ctx)); err != nil {
			l.Error(err)
		}
	})
	l.Cleanup(remove)
	return remove
}
