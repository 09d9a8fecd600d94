package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/network/vpc"
)

// TestPods: the network of pods, and the way from the API server to their output.
func TestPods(t *testing.T) {
	l := requireCluster(t)
	pods := l.run(pod("net-a", l.c.Machines[0]), pod("net-b", l.c.Machines[0]), pod("net-c", l.c.Machines[1]), pod("net-d", l.c.Machines[2]))

	// A pod's address is from the subnet, and EC2 lists it on the pod's own node.
	t.Run("addresses", func(t *testing.T) {
		l := &lab{T: t, c: l.c}
		seen := map[netip.Addr]bool{}
		for _, p := range pods {
			ip, err := netip.ParseAddr(p.Status.PodIP)
			l.check(err)
			owner, ok := l.c.World.OwnerOf(ip)
			if !ok || owner.Attachment.InstanceID != l.machine(p).Instance.ID {
				t.Errorf("pod %s has %s, which EC2 knows as one of %q; want one of its node %s", p.Name, ip, owner.Attachment.InstanceID, l.machine(p).Instance.ID)
			}
			if !l.c.Subnet.CIDR.Contains(ip) || seen[ip] {
				t.Errorf("pod %s has %s: not of subnet %s, or another pod's", p.Name, ip, l.c.Subnet.CIDR)
			}
			seen[ip] = true
		}
	})

	// On a node and across nodes, without address translation.
	t.Run("each_other", func(t *testing.T) {
		l := &lab{T: t, c: l.c}
		for _, to := range pods[1:3] {
			for _, network := range []string{"tcp", "udp"} {
				for _, pair := range [][2]*corev1.Pod{{pods[0], to}, {to, pods[0]}} {
					source, name := l.reach(pair[0], network, lineOf(pair[1]))
					if source.Addr().String() != pair[0].Status.PodIP || name != pair[1].Name {
						t.Errorf("%s from %s: %q saw it as from %s", network, pair[0].Name, name, source)
					}
				}
			}
		}
	})

	// Through SNAT: only instances have public addresses.
	t.Run("outside", func(t *testing.T) {
		l := &lab{T: t, c: l.c}
		for _, network := range []string{"tcp", "udp"} {
			source, _ := l.reach(pods[0], network, vpc.Outside.String())
			if source.Addr() != l.machine(pods[0]).Instance.PrimaryIP {
				t.Errorf("over %s the outside saw %s, want the node's primary address %s", network, source, l.machine(pods[0]).Instance.PrimaryIP)
			}
		}
	})

	// The API server reaches kubelets.
	t.Run("log", func(t *testing.T) {
		l := &lab{T: t, c: l.c}
		testenv.EventuallyErr(l, "its log", func() error { // the pod runs before it prints
			said, err := l.log(pods[2])
			if err == nil && said != "podprobe serves\n" {
				err = fmt.Errorf("log %q", said)
			}
			return err
		})
	})
}

// TestService_ClusterIPAndNodePort: kube-proxy reaches pods of other nodes, from pods and
// from outside.
func TestService_ClusterIPAndNodePort(t *testing.T) {
	l := requireCluster(t)
	service, err := cluster.Create(l.Context(), l.c, namespace, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "lines"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"service": "lines"},
			Ports: []corev1.ServicePort{
				{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: 70, TargetPort: intstr.FromInt32(7)},
				{Name: "udp", Protocol: corev1.ProtocolUDP, Port: 70, TargetPort: intstr.FromInt32(7)},
			},
		},
	})
	l.check(err)
	t.Cleanup(func() {
		if err := cluster.Delete[corev1.Service](context.WithoutCancel(t.Context()), l.c, namespace, "lines"); err != nil {
			t.Error(err)
		}
	})
	serves := func(p *corev1.Pod) { p.Labels["service"] = "lines" }
	pods := l.run(pod("service-a", l.c.Machines[0], serves), pod("service-b", l.c.Machines[1], serves), pod("client", l.c.Machines[2]))
	want := map[string]bool{"service-a": true, "service-b": true}

	for _, network := range []string{"tcp", "udp"} {
		got := map[string]bool{}
		testenv.EventuallyErr(l, "both pods to answer to the ClusterIP over "+network, func() error {
			source, name := l.reach(pods[2], network, service.Spec.ClusterIP+":70")
			if source.Addr().String() != pods[2].Status.PodIP {
				t.Errorf("%s saw the client as %s, want its own address %s", name, source, pods[2].Status.PodIP)
			}
			if got[name] = true; len(got) < len(want) {
				return fmt.Errorf("so far %v", got)
			}
			return nil
		})
	}

	for _, m := range l.c.Machines[:3] { // the third has no pod of the Service
		got := map[string]bool{}
		at := netip.AddrPortFrom(m.Instance.PrimaryIP, uint16(service.Spec.Ports[0].NodePort))
		testenv.EventuallyErr(l, "both pods to answer at NodePort "+at.String(), func() error {
			name, err := l.askFromOutside(at)
			if err != nil {
				return err
			}
			if got[name] = true; len(got) < len(want) {
				return fmt.Errorf("so far %v", got)
			}
			return nil
		})
	}
}

// askFromOutside sends a line to an address of the VPC, from outside it, and returns the
// name of the pod that answers.
func (l *lab) askFromOutside(to netip.AddrPort) (string, error) {
	const try = 15 * time.Second                         // callers who expect an answer try again
	ctx, cancel := context.WithTimeout(l.Context(), try) //realtime: one of several tries
	defer cancel()
	conn, err := l.c.Fabric.Outside.Dial(ctx, "tcp", netip.Addr{}, to)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(try)); err != nil { //realtime: see above
		return "", err
	}
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	return name, err
}

// TestProbes: kubelet reaches the pods of its node, and restarts a container that fails.
func TestProbes(t *testing.T) {
	l := requireCluster(t)
	p := l.run(pod("probes", l.c.Machines[0], func(p *corev1.Pod) {
		probe := func(h corev1.ProbeHandler) *corev1.Probe {
			return &corev1.Probe{ProbeHandler: h, PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 2}
		}
		c := &p.Spec.Containers[0]
		c.LivenessProbe = probe(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}})
		c.ReadinessProbe = probe(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(7)}})
	}))[0]
	_, err := l.get(p, "/fail")
	l.check(err)
	testenv.EventuallyErr(l, "the failing container to be restarted", func() error {
		now, err := cluster.Get[corev1.Pod](l.Context(), l.c, namespace, p.Name)
		if err == nil && now.Status.ContainerStatuses[0].RestartCount == 0 {
			err = fmt.Errorf("not restarted")
		}
		return err
	})
	if now := l.running(p.Name); now.Status.PodIP != p.Status.PodIP {
		t.Errorf("the pod has %s after the restart of its container, want %s as before", now.Status.PodIP, p.Status.PodIP)
	}
}

// log returns the output of a pod's first container since its start.
func (l *lab) log(p *corev1.Pod) (string, error) {
	client, err := rest.HTTPClientFor(l.c.API.Admin())
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	resp, err := client.Get(l.c.API.Admin().Host + "/api/v1/namespaces/" + p.Namespace + "/pods/" + p.Name + "/log")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return string(text), err
}
