package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
)

const namespace = "default"

// shared is a cluster shared by the tests of this binary: it takes ten seconds to start.
type shared struct {
	sync.Mutex
	options cluster.Options
	cluster *cluster.Cluster
	err     error // why it did not start, reported to every test
}

// ipv4Cluster lets pods reach IPv6 destinations; its third node has room for many pods.
var ipv4Cluster = &shared{options: cluster.Options{
	Nodes: []cluster.NodeOptions{{IPv6: true}, {IPv6: true}, {IPv6: true, Type: "c5.xlarge"}},
	Env:   map[string]string{"ANNOTATE_POD_IP": "true", "ENABLE_BANDWIDTH_PLUGIN": "true", "ENABLE_V6_EGRESS": "true"},
}}

// clusters are those that tests share; only one runs at a time. Nightly runs add to them.
var clusters = []*shared{ipv4Cluster}

func requireCluster(t *testing.T) *lab { t.Helper(); return ipv4Cluster.require(t) }

func (s *shared) require(t *testing.T) *lab {
	t.Helper()
	testenv.RequireRoot(t)
	if os.Geteuid() != 0 || os.Getenv("CNI_TEST_BIN") == "" {
		testenv.Missing(t, "kube", "needs root and CNI_TEST_BIN, a directory of built programs", "sudo make test LAYERS=cluster")
	}
	if err := cluster.Missing(os.Getenv("CNI_TEST_BIN")); err != nil {
		testenv.Missing(t, "kube", err.Error(), "sudo make test LAYERS=cluster")
	}
	s.Lock()
	defer s.Unlock()
	if s.cluster == nil && s.err == nil {
		for _, other := range clusters {
			if other != s {
				s.err = other.end() // their links have the same names, and the machine is small
			}
		}
		s.start()
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	l := &lab{T: t, c: s.cluster}
	t.Cleanup(l.explain)
	return l
}

func (s *shared) start() {
	// It outlives the test, so it does not use the test's context.
	var dir string
	if dir, s.err = os.MkdirTemp("", "cl"); s.err == nil {
		s.options.Dir, s.options.Binaries = dir, os.Getenv("CNI_TEST_BIN")
		s.cluster, s.err = cluster.Start(context.Background(), s.options)
	}
}

// end ends the cluster if it runs. A later test that needs it gets a new one.
func (s *shared) end() error {
	s.Lock()
	defer s.Unlock()
	var errs []error
	if s.cluster != nil {
		for _, v := range s.cluster.World.Violations() {
			errs = append(errs, errors.New("EC2: "+v))
		}
		errs = append(errs, s.cluster.Close())
		s.cluster = nil
	}
	return errors.Join(append(errs, os.RemoveAll(s.options.Dir))...)
}

func endShared() error {
	var errs []error
	for _, s := range clusters {
		errs = append(errs, s.end())
	}
	return errors.Join(errs...)
}

// lab is a test with its cluster.
type lab struct {
	*testing.T
	c *cluster.Cluster
}

func (l *lab) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// pod describes a pod that runs podprobe, on a machine if one is given.
func pod(name string, on *cluster.Machine, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"test": name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			DNSPolicy:                     corev1.DNSDefault,
			Containers:                    []corev1.Container{{Name: "app", Image: cluster.ProbeImage, ImagePullPolicy: corev1.PullNever}},
		},
	}
	if on != nil {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: on.Name}
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

// run creates pods and waits until all of them run. They are deleted when the test ends.
func (l *lab) run(pods ...*corev1.Pod) []*corev1.Pod {
	l.Helper()
	l.Cleanup(func() { l.delete(names(pods)...) })
	for _, p := range pods {
		_, err := cluster.Create(l.Context(), l.c, namespace, p)
		l.check(err)
	}
	out := make([]*corev1.Pod, len(pods))
	for i, p := range pods {
		out[i] = l.running(p.Name)
	}
	return out
}

// running waits until a pod runs, with an address.
func (l *lab) running(name string) (p *corev1.Pod) {
	l.Helper()
	testenv.EventuallyErr(l, "pod "+name+" to run", func() (err error) {
		if p, err = cluster.Get[corev1.Pod](l.Context(), l.c, namespace, name); err != nil {
			return err
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && p.Status.PodIP != "" {
				return nil
			}
		}
		return fmt.Errorf("phase %s %s, address %q", p.Status.Phase, p.Status.Reason, p.Status.PodIP)
	})
	return p
}

func names(pods []*corev1.Pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

// delete deletes pods and waits until they are gone. A pod that is already gone is not an
// error.
func (l *lab) delete(pods ...string) {
	l.Helper()
	ctx := context.WithoutCancel(l.Context()) // a cleanup's context has ended
	for _, name := range pods {
		err := cluster.Delete[corev1.Pod](ctx, l.c, namespace, name)
		if err != nil && !apierrors.IsNotFound(err) {
			l.Error(err)
		}
	}
	for _, name := range pods {
		testenv.EventuallyErr(l, "the end of pod "+name, func() error {
			_, err := cluster.Get[corev1.Pod](ctx, l.c, namespace, name)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil {
				err = errors.New("still there")
			}
			return err
		})
	}
}

// machine returns the machine on which a pod runs.
func (l *lab) machine(p *corev1.Pod) *cluster.Machine {
	l.Helper()
	for _, m := range l.c.Machines {
		if m.Name == p.Spec.NodeName {
			return m
		}
	}
	l.Fatalf("pod %s is on node %q, which is none of the cluster's", p.Name, p.Spec.NodeName)
	return nil
}

// get sends an HTTP request to a podprobe, from the control plane's side of the VPC.
func (l *lab) get(p *corev1.Pod, path string, query ...string) (string, error) {
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + net.JoinHostPort(p.Status.PodIP, "8080") + path + "?" + values.Encode())
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	return string(body), err
}

// lineOf returns the address of a pod's line server.
func lineOf(p *corev1.Pod) string { return net.JoinHostPort(p.Status.PodIP, "7") }

// reach makes a pod talk to an address over TCP or UDP and returns the source that the
// peer saw and the peer's name, if it sends one.
func (l *lab) reach(from *corev1.Pod, network, to string) (source netip.AddrPort, name string) {
	l.Helper()
	var answer string
	testenv.EventuallyErr(l, fmt.Sprintf("pod %s to reach %s over %s", from.Name, to, network), func() (err error) {
		answer, err = l.get(from, "/ask", "network", network, "to", to)
		return err
	})
	address, name, _ := strings.Cut(answer, " ")
	source, err := netip.ParseAddrPort(address)
	l.check(err)
	return source, name
}

// explain logs details that may explain a failure.
func (l *lab) explain() {
	if !l.Failed() {
		return
	}
	ctx := context.WithoutCancel(l.Context())
	events, err := cluster.List[corev1.Event](ctx, l.c, namespace, metav1.ListOptions{FieldSelector: "type=Warning,involvedObject.kind=Pod"})
	if err != nil {
		l.Log(err)
	}
	for _, e := range events {
		l.Logf("pod %s %s: %s", e.InvolvedObject.Name, e.Reason, e.Message)
	}
	for _, m := range l.c.Machines {
		if m.Node == nil {
			continue
		}
		logs := m.Logs()
		delete(logs, "ipamd.log")
		for _, service := range []string{"kubelet", "containerd"} {
			if logs[service], err = m.Log(service); err != nil {
				l.Log(err)
			}
		}
		for name, text := range logs {
			if strings.TrimSpace(text) != "" {
				l.Logf("--- %s of %s:\n%s", name, m.Name, text[max(0, len(text)-3000):])
			}
		}
	}
}
