package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/network/vpc"
)

// stage is a part of the life of an installation.
type stage struct {
	name string
	do   func(*lab)
}

// stages of TestDeploy, in order. At night more follow.
var stages = []stage{{"restart", (*lab).restarts}}

// TestDeploy takes a cluster with running pods through the life of an installation: its DaemonSet
// starts anew on node after node, as in every upgrade. At night follow an upgrade of the release
// that the cluster started with, whose selector is the chart's default, a change of the selector,
// uninstall, and the migration of docs/migrate.md from upstream's manifest to ours and back.
// Throughout, pods' connections across nodes and to the outside stay up, no pod restarts, and pods
// that are created while a DaemonSet rolls out all run in the end.
// Upstream's manifest starts our images: upstream's are not available.
func TestDeploy(t *testing.T) {
	l := requireCluster(t)
	pods := l.run(pod("flow-a", l.c.Machines[0]), pod("flow-b", l.c.Machines[1]), pod("flow-c", l.c.Machines[2]))
	flows := []*flow{
		l.flow(pods[0], lineOf(pods[1])), l.flow(pods[1], lineOf(pods[2])), l.flow(pods[2], lineOf(pods[0])),
		l.flow(pods[0], vpc.Outside.String()),
	}
	for _, stage := range stages {
		passed := t.Run(stage.name, func(t *testing.T) {
			l := &lab{T: t, c: l.c}
			t.Cleanup(l.explain)
			took := testenv.Took(func() { stage.do(l) })
			for _, f := range flows {
				l.check(f.goesOn(l.T))
			}
			for _, before := range pods {
				now := l.running(before.Name)
				if now.UID != before.UID || now.Status.PodIP != before.Status.PodIP || now.Status.ContainerStatuses[0].RestartCount != 0 {
					t.Errorf("pod %s has %s and %d restarts, had %s and none", now.Name, now.Status.PodIP, now.Status.ContainerStatuses[0].RestartCount, before.Status.PodIP)
				}
			}
			t.Logf("%.0fs", took.Seconds())
		})
		if !passed {
			t.FailNow() // the next stage starts where this one ends
		}
	}
	for _, f := range flows {
		t.Logf("%s: %d answers, the longest wait %v", f.what, f.answers, f.longest.Round(time.Millisecond))
	}
}

// restarts the CNI on each node without a change.
func (l *lab) restarts() {
	l.rolls("restart", func() { l.kubectl("", "rollout", "restart", "daemonset/aws-node") })
}

// helm runs helm, which must succeed.
func (l *lab) helm(args ...string) string {
	l.Helper()
	out, err := l.c.Helm(l.Context(), args...)
	l.check(err)
	return out
}

// kubectl runs kubectl as an administrator in the CNI's namespace.
func (l *lab) kubectl(in string, args ...string) string {
	l.Helper()
	programs, err := kubeapi.ProgramDir()
	l.check(err)
	cmd := exec.CommandContext(l.Context(), filepath.Join(programs, "kubectl"), append(args, "--namespace", cluster.SystemNamespace)...)
	cmd.Stdin, cmd.Env = strings.NewReader(in), []string{"KUBECONFIG=" + l.c.Kubeconfig, "HOME=" + l.TempDir(), "PATH=" + os.Getenv("PATH")}
	e, err := finished(cmd)
	l.check(err)
	if e.code != 0 {
		l.Fatalf("kubectl %s: exit %d: %s", strings.Join(args, " "), e.code, e.said)
	}
	return e.out
}

// cniPods maps nodes to their CNI pods, with the number of restarts.
func (l *lab) cniPods() map[string]string {
	l.Helper()
	out := map[string]string{}
	for _, m := range l.c.Machines[:3] {
		p, err := m.CNIPod(l.Context())
		l.check(err)
		out[m.Name] = fmt.Sprintf("%s, restarted %d times", p.UID, p.Status.ContainerStatuses[0].RestartCount)
	}
	return out
}

// rolling returns why the DaemonSet is not rolled out yet, nil if it is.
func (l *lab) rolling() error {
	set, err := cluster.Get[appsv1.DaemonSet](l.Context(), l.c, cluster.SystemNamespace, "aws-node")
	if err != nil {
		return err
	}
	if s := set.Status; s.ObservedGeneration != set.Generation || s.DesiredNumberScheduled < 3 || s.UpdatedNumberScheduled != s.DesiredNumberScheduled || s.NumberAvailable != s.DesiredNumberScheduled {
		return fmt.Errorf("generation %d: %+v", set.Generation, s)
	}
	return nil
}

// podsPerRoll bounds the pods created while a DaemonSet rolls out.
const podsPerRoll = 12

// rolls runs do, which restarts the CNI on each node, and keeps creating pods meanwhile. All of
// them run in the end, and kubelet is refused an address only while a daemon is away.
func (l *lab) rolls(name string, do func()) {
	l.Helper()
	before := l.cniPods()
	do()
	made, next := 0, time.Time{}
	testenv.EventuallyErr(l, "the DaemonSet to be rolled out", func() error {
		if made < podsPerRoll && time.Now().After(next) { //realtime: a pod a second
			l.create(fmt.Sprintf("%s-%d", name, made), l.c.Machines[made%3])
			made, next = made+1, time.Now().Add(time.Second)
		}
		return l.rolling()
	})
	for node, now := range l.cniPods() {
		if now == before[node] {
			l.Errorf("the CNI's pod on %s is still %s", node, now)
		}
	}
	l.allRun(name, made)
	l.Logf("%d pods run, kubelet was refused an address %d times", made, l.refusals(name+"-"))
}

func (l *lab) create(name string, on *cluster.Machine) {
	l.Helper()
	_, err := cluster.Create(l.Context(), l.c, namespace, pod(name, on))
	l.check(err)
	l.Cleanup(func() { l.delete(name) })
}

// allRun waits until pods run, and deletes them.
func (l *lab) allRun(name string, number int) {
	l.Helper()
	var all []string
	for i := range number {
		all = append(all, l.running(fmt.Sprintf("%s-%d", name, i)).Name)
	}
	l.delete(all...)
}

// refusals counts the sandboxes that failed because no daemon was running, for pods whose names
// have the prefix. No other reason is allowed.
func (l *lab) refusals(prefix string) (count int32) {
	l.Helper()
	events, err := cluster.List[corev1.Event](l.Context(), l.c, namespace, metav1.ListOptions{FieldSelector: "reason=FailedCreatePodSandBox"})
	l.check(err)
	for _, e := range events {
		if !strings.HasPrefix(e.InvolvedObject.Name, prefix) {
			continue
		}
		if !strings.Contains(e.Message, "daemon-unreachable") {
			l.Errorf("pod %s: %s", e.InvolvedObject.Name, e.Message)
		}
		count += max(e.Count, 1)
	}
	return count
}

// flow is a long-lived connection of a pod.
type flow struct {
	what    string
	mu      sync.Mutex // guards what follows
	err     error      // why it ended
	answers int
	longest time.Duration // between two answers, where the machine does not starve us
}

// flow keeps a connection of a pod to an address until the test ends.
func (l *lab) flow(from *corev1.Pod, to string) *flow {
	l.Helper()
	ctx, cancel := context.WithCancel(l.Context())
	l.Cleanup(cancel)
	at := "http://" + net.JoinHostPort(from.Status.PodIP, "8080") + "/talk?to=" + url.QueryEscape(to)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	l.check(err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var resp *http.Response
	testenv.EventuallyErr(l, "pod "+from.Name+" to connect to "+to, func() (err error) { // a pod runs before it listens
		if resp, err = client.Do(req); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.Join(errors.New(resp.Status), resp.Body.Close())
		}
		return nil
	})
	f := &flow{what: from.Name + " to " + to}
	go func() { // ends with the test
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for {
			more := false
			waited := testenv.Unstarved(func() { more = lines.Scan() })
			if !more {
				break
			}
			f.answered(waited)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err = errors.Join(errors.New("it ended"), lines.Err())
	}()
	return f
}

func (f *flow) answered(waited time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.longest = max(f.longest, waited)
	f.answers++
}

// silence is how long a flow may go without an answer: TCP retransmits what is lost.
const silence = 30 * time.Second

// goesOn waits for one more answer. It returns an error if the flow has ended, or ever went without
// an answer for too long.
func (f *flow) goesOn(t *testing.T) error {
	f.mu.Lock()
	before := f.answers
	f.mu.Unlock()
	var err error
	testenv.Eventually(t, "an answer on the connection of "+f.what, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		err = f.err
		return err != nil || f.answers > before
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.longest > silence {
		err = fmt.Errorf("it was silent for %v", f.longest)
	}
	if err != nil {
		return fmt.Errorf("the connection of %s: %w", f.what, err)
	}
	return nil
}
