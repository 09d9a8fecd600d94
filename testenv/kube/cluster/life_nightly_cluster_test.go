//go:build nightly

package cluster_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
)

// TestReboot: a node that lost its network namespace, its processes and /run, but not its
// files, runs its pods again.
func TestReboot(t *testing.T) {
	l := requireCluster(t)
	m := l.c.Machines[1]
	pods := l.run(pod("rebooted", m), pod("rebooted-too", m), pod("watcher", l.c.Machines[0]))
	l.check(m.Reboot(testenv.Context(l)))
	l.check(m.AwaitReady(testenv.Context(l)))
	seen := map[string]bool{}
	for _, before := range pods[:2] {
		var now *corev1.Pod
		testenv.EventuallyErr(l, "pod "+before.Name+" to run again", func() error {
			now = l.running(before.Name)
			if now.Status.ContainerStatuses[0].RestartCount == 0 {
				return errors.New("no container of this boot yet")
			}
			return nil
		})
		ip, err := netip.ParseAddr(now.Status.PodIP)
		l.check(err)
		if owner, _ := l.c.World.OwnerOf(ip); owner.Attachment.InstanceID != m.Instance.ID || seen[now.Status.PodIP] {
			t.Errorf("pod %s has %s, which is of %q or another pod's", now.Name, ip, owner.Attachment.InstanceID)
		}
		seen[now.Status.PodIP] = true
		l.reachesBothWays(now, pods[2])
	}
	l.reachesBothWays(l.run(pod("after-reboot", m))[0], pods[2])
}

// TestScale starts thirty pods at once on one node.
func TestScale(t *testing.T) {
	l := requireCluster(t)
	var pods []*corev1.Pod
	for i := range 30 {
		pods = append(pods, pod(fmt.Sprintf("scale-%02d", i), l.c.Machines[2]))
	}
	took := testenv.Took(func() { pods = l.run(pods...) })
	t.Logf("%d pods run after %.1fs", len(pods), took.Seconds())
	seen := map[string]string{}
	for _, p := range pods {
		if other := seen[p.Status.PodIP]; other != "" {
			t.Errorf("pods %s and %s have %s", other, p.Name, p.Status.PodIP)
		}
		seen[p.Status.PodIP] = p.Name
	}
	l.noFailedSandboxes("scale-")
}

// noFailedSandboxes checks that no pod with the name prefix had a failed sandbox.
func (l *lab) noFailedSandboxes(prefix string) {
	l.Helper()
	events, err := cluster.List[corev1.Event](l.Context(), l.c, namespace, metav1.ListOptions{FieldSelector: "reason=FailedCreatePodSandBox"})
	l.check(err)
	for _, e := range events {
		if strings.HasPrefix(e.InvolvedObject.Name, prefix) {
			l.Errorf("pod %s: %s", e.InvolvedObject.Name, e.Message)
		}
	}
}

// TestBandwidth: with ENABLE_BANDWIDTH_PLUGIN a pod sends no faster than its annotation
// allows, once it has used up the burst that the runtime requests, 2^32-1 bits.
func TestBandwidth(t *testing.T) {
	l := requireCluster(t)
	const (
		limit   = 16e6             // bits a second
		burst   = 512<<20 + 10<<20 // bytes; more than the burst, which refills meanwhile
		measure = 8 << 20          // bytes: 4 s
	)
	pods := l.run(
		pod("sink", l.c.Machines[1]),
		pod("free", l.c.Machines[0]),
		pod("limited", l.c.Machines[0], func(p *corev1.Pod) {
			p.Annotations = map[string]string{"kubernetes.io/egress-bandwidth": "16M"}
		}),
	)
	rate := func(from *corev1.Pod, bytes int) float64 {
		var answer string
		testenv.EventuallyErr(l, "pod "+from.Name+" to send", func() (err error) { // a pod runs before it listens
			answer, err = l.get(from, "/send", "to", pods[0].Status.PodIP+":9", "bytes", strconv.Itoa(bytes))
			return err
		})
		ms, err := strconv.ParseFloat(answer, 64)
		l.check(err)
		return float64(bytes) * 8 / (max(ms, 1) / 1000)
	}
	rate(pods[2], burst)
	limited, free := rate(pods[2], measure), rate(pods[1], measure)
	t.Logf("%.0f Mbit/s without a limit, %.1f with one of %.0f", free/1e6, limited/1e6, limit/1e6)
	if limited > 2*limit {
		t.Errorf("%.1f Mbit/s with a limit of %.0f", limited/1e6, limit/1e6)
	}
	if free < 2*limited {
		t.Errorf("%.0f Mbit/s without a limit: the other's %.1f shows nothing", free/1e6, limited/1e6)
	}
}
