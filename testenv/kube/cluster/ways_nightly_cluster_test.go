//go:build nightly

package cluster_test

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/network/vpc"
)

func init() { clusters = append(clusters, ipv6Cluster) }

var ipv6Cluster = &shared{options: cluster.Options{Nodes: make([]cluster.NodeOptions, 2), IPv6: true}}

// TestIPv6_Pods have addresses from their node's /80 and no IPv4 addresses, and reach each
// other on a node and across nodes without address translation.
func TestIPv6_Pods(t *testing.T) {
	l := ipv6Cluster.require(t)
	pods := l.run(pod("six-a", l.c.Machines[0]), pod("six-b", l.c.Machines[0]), pod("six-c", l.c.Machines[1]))
	seen := map[netip.Addr]bool{}
	for _, p := range pods {
		ip, err := netip.ParseAddr(p.Status.PodIP)
		l.check(err)
		owner, _ := l.c.World.OwnerOf(ip)
		if owner.Attachment.InstanceID != l.machine(p).Instance.ID || len(owner.IPv6Prefixes) != 1 || !owner.IPv6Prefixes[0].Contains(ip) {
			t.Errorf("pod %s has %s, which is of %q with %v", p.Name, ip, owner.Attachment.InstanceID, owner.IPv6Prefixes)
		}
		if len(p.Status.PodIPs) != 1 || seen[ip] {
			t.Errorf("pod %s has %v, or an address of another pod", p.Name, p.Status.PodIPs)
		}
		seen[ip] = true
	}
	for _, network := range []string{"tcp", "udp"} {
		for _, to := range pods[1:] {
			for _, pair := range [][2]*corev1.Pod{{pods[0], to}, {to, pods[0]}} {
				source, name := l.reach(pair[0], network, lineOf(pair[1]))
				if source.Addr().String() != pair[0].Status.PodIP || name != pair[1].Name {
					t.Errorf("%s from %s: %q saw it as from %s", network, pair[0].Name, name, source)
				}
			}
		}
	}
}

// TestIPv6_Service: kube-proxy maps an IPv6 ClusterIP to pods of all nodes.
func TestIPv6_Service(t *testing.T) {
	l := ipv6Cluster.require(t)
	service, err := cluster.Create(l.Context(), l.c, namespace, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "six-lines"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"service": "six-lines"},
			Ports:    []corev1.ServicePort{{Port: 70, TargetPort: intstr.FromInt32(7)}},
		},
	})
	l.check(err)
	if at, err := netip.ParseAddr(service.Spec.ClusterIP); err != nil || !at.Is6() {
		t.Fatalf("the Service has %q", service.Spec.ClusterIP)
	}
	serves := func(p *corev1.Pod) { p.Labels["service"] = "six-lines" }
	pods := l.run(pod("six-serves-a", l.c.Machines[0], serves), pod("six-serves-b", l.c.Machines[1], serves), pod("six-client", l.c.Machines[1]))
	got := map[string]bool{}
	testenv.EventuallyErr(l, "both pods to answer to the ClusterIP", func() error {
		source, name := l.reach(pods[2], "tcp", net.JoinHostPort(service.Spec.ClusterIP, "70"))
		if source.Addr().String() != pods[2].Status.PodIP {
			t.Errorf("%s saw the client as %s, want its own address %s", name, source, pods[2].Status.PodIP)
		}
		if got[name] = true; len(got) < 2 {
			return fmt.Errorf("so far %v", got)
		}
		return nil
	})
}

// way is how pods reach the address family that they have no address of.
type way struct {
	save, chain string // where its rules are
	leases      string // the directory of host-local
}

var (
	way4 = way{"iptables-save", "CNI-E4-", "/run/cni/v6pd/egress-v4-ipam/aws-cni"}
	way6 = way{"ip6tables-save", "CNI-E6-", "/run/cni/v4pd/egress-v6-ipam/aws-cni"}
)

// traces returns what a machine holds for its pods' use of a way.
func (l *lab) traces(m *cluster.Machine, w way) map[string][]string {
	l.Helper()
	out := map[string][]string{}
	rules, err := m.Output(w.save, "-t", "nat")
	l.check(err)
	out["chains"] = regexp.MustCompile(`(?m)^:`+w.chain+`\S+`).FindAllString(rules, -1)
	files, err := m.Output("sh", "-c", "if [ -d "+w.leases+" ]; then ls "+w.leases+"; fi")
	l.check(err)
	for name := range strings.FieldsSeq(files) {
		if _, err := netip.ParseAddr(name); err == nil { // not the lock
			out["leases"] = append(out["leases"], name)
		}
	}
	links, err := m.Output("ip", "-o", "link", "show", "type", "veth")
	l.check(err)
	out["links"] = regexp.MustCompile(`(?m)^\d+: veth[^@:]+`).FindAllString(links, -1)
	return out
}

// goesOut tests a way with several pods on a machine, and that they leave nothing behind.
// The server replies with the address that it saw.
func (l *lab) goesOut(m *cluster.Machine, w way, to func(network string) string, as netip.Addr) {
	l.Helper()
	testenv.EventuallyErr(l, "pods of other tests to be gone", func() error { return noTraces(l.traces(m, w)) })
	pods := l.run(pod("out-a", m), pod("out-b", m))
	for _, p := range pods {
		for _, network := range []string{"tcp", "udp"} {
			if source, _ := l.reach(p, network, to(network)); source.Addr() != as {
				l.Errorf("over %s the outside saw %s as %s, want the node's %s", network, p.Name, source, as)
			}
		}
	}
	for what, got := range l.traces(m, w) {
		if len(got) != len(pods) {
			l.Errorf("%d pods have %s %q", len(pods), what, got)
		}
	}
	l.delete(names(pods)...)
	testenv.EventuallyErr(l, "nothing of the way out to be left", func() error { return noTraces(l.traces(m, w)) })
	left, err := m.Leftovers(l.Context())
	l.check(err)
	for _, what := range left {
		l.Errorf("left on the node: %s", what)
	}
}

func noTraces(traces map[string][]string) error {
	for what, got := range traces {
		if len(got) > 0 {
			return fmt.Errorf("%s %q", what, got)
		}
	}
	return nil
}

// TestIPv6_ReachesIPv4: pods of an IPv6 cluster reach IPv4 destinations with their node's address.
func TestIPv6_ReachesIPv4(t *testing.T) {
	l := ipv6Cluster.require(t)
	m := l.c.Machines[0]
	l.goesOut(m, way4, func(string) string { return vpc.Outside.String() }, m.Instance.PrimaryIP)
}

// TestIPv4_ReachesIPv6: pods of an IPv4 cluster reach IPv6 destinations with their node's
// address, if that is enabled.
func TestIPv4_ReachesIPv6(t *testing.T) {
	l := requireCluster(t)
	m := l.c.Machines[1]
	outside := l.answers(cluster.UplinkIPv6.Addr())
	l.goesOut(m, way6, func(network string) string { return outside[network] }, m.Primary.IPv6s[0])
}

// answers serves lines at one of the test's addresses, as podprobe does.
func (l *lab) answers(at netip.Addr) map[string]string {
	l.Helper()
	address := netip.AddrPortFrom(at, 0).String()
	listener, err := net.Listen("tcp", address)
	l.check(err)
	l.Cleanup(func() { listener.Close() })
	packets, err := net.ListenPacket("udp", address)
	l.check(err)
	l.Cleanup(func() { packets.Close() })
	go func() { // both end with the test
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := bufio.NewReader(c).ReadString('\n'); err == nil {
				fmt.Fprintln(c, c.RemoteAddr(), "outside")
			}
			c.Close()
		}
	}()
	go func() {
		line := make([]byte, 1<<10)
		for {
			_, from, err := packets.ReadFrom(line)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo([]byte(from.String()+" outside\n"), from) // if it is lost, the client asks again
		}
	}()
	return map[string]string{"tcp": listener.Addr().String(), "udp": packets.LocalAddr().String()}
}
