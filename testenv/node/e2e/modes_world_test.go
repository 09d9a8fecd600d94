package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// addSubnet adds a subnet of the lab's VPC.
func (c *cluster) addSubnet(s fakeaws.SubnetSpec) fakeaws.Subnet {
	c.t.Helper()
	s.VPCID = c.subnet.VPCID
	added, err := c.world.AddSubnet(s)
	if err != nil {
		c.t.Fatal(err)
	}
	return added
}

// ipv4Subnet adds a subnet of 4,096 addresses: 10.1.<third>.0/20.
func (c *cluster) ipv4Subnet(third int, tags map[string]string) fakeaws.Subnet {
	c.t.Helper()
	return c.addSubnet(fakeaws.SubnetSpec{CIDR: netip.MustParsePrefix(fmt.Sprintf("10.1.%d.0/20", third)), Tags: tags})
}

// patch changes the member's Node as kubectl patch does.
func (m *member) patch(change any) {
	m.c.t.Helper()
	body, err := json.Marshal(change)
	if err != nil {
		m.c.t.Fatal(err)
	}
	if _, err := m.c.objects(nodes).Patch(m.c.t.Context(), m.name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		m.c.t.Fatal(err)
	}
}

// mark sets labels and annotations of the member's Node; nil removes one.
func (m *member) mark(labels, annotations map[string]any) {
	m.c.t.Helper()
	m.patch(map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}})
}

// cordon does what kubectl cordon and the node controller do.
func (m *member) cordon(on bool) {
	m.c.t.Helper()
	taints := []corev1.Taint{}
	if on {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	m.patch(map[string]any{"spec": map[string]any{"unschedulable": on, "taints": taints}})
}

// pod runs a pod of the cluster with the built plugin.
func (m *member) pod(name string, annotations ...string) (*node.Pod, error) {
	m.c.t.Helper()
	noted := map[string]string{}
	for _, a := range annotations {
		key, value, _ := strings.Cut(a, "=")
		noted[key] = value
	}
	bound := m.bind(name, func(p *corev1.Pod) { p.Annotations = noted })
	p, err := m.AddPod(node.PodSpec{
		Namespace: bound.Namespace, Name: bound.Name, UID: string(bound.UID),
		Config: map[string]any{"runtimeConfig": map[string]any{"io.kubernetes.cri.pod-annotations": noted}},
	})
	if err == nil {
		m.c.api.SetPodStatus(m.c.t, bound, func(s *corev1.PodStatus) {
			s.Phase, s.PodIP, s.PodIPs = corev1.PodRunning, p.IP.String(), []corev1.PodIP{{IP: p.IP.String()}}
		})
	}
	return p, err
}

// awaitPod runs a pod, retrying as kubelet does. Every failure must name the cause.
func (m *member) awaitPod(name, cause string) (p *node.Pod) {
	m.c.t.Helper()
	bound := m.bind(name)
	m.c.within(noticedWithin, "pod "+name+" up", func() bool {
		var err error
		p, err = m.AddPod(node.PodSpec{Namespace: bound.Namespace, Name: bound.Name, UID: string(bound.UID)})
		if err == nil {
			return true
		}
		if e := pluginError(err); e == nil || !strings.Contains(e.Details, cause) {
			m.c.t.Fatalf("pod %s failed with %v, want the cause %q", name, err, cause)
		}
		return false
	})
	return p
}

// run runs pods, which must come up.
func (m *member) run(prefix string, count int, annotations ...string) (pods []*node.Pod) {
	m.c.t.Helper()
	for i := range count {
		p, err := m.pod(fmt.Sprintf("%s-%d", prefix, i), annotations...)
		if err != nil {
			m.c.t.Fatal(err)
		}
		pods = append(pods, p)
	}
	return pods
}

// stop ends the member's daemon.
func (m *member) stop() {
	m.c.t.Helper()
	ctx := testenv.Context(m.c.t)
	if _, err := m.StopDaemon(ctx, syscall.SIGTERM); err != nil {
		m.c.t.Fatal(err)
	}
}

// restart restarts the daemon with other settings.
func (m *member) restart(env map[string]string) {
	m.c.t.Helper()
	m.stop()
	m.start(env)
}

// enis lists the member's ENIs by card and device.
func (m *member) enis() []fakeaws.ENI { return m.c.world.ENIsOf(m.InstanceID) }

// owner returns the member's ENI that has an address.
func (m *member) owner(a netip.Addr) fakeaws.ENI {
	m.c.t.Helper()
	e, ok := m.c.world.OwnerOf(a)
	if !ok || e.Attachment.InstanceID != m.InstanceID {
		m.c.t.Fatalf("%v is on no ENI of %s: %+v", a, m.InstanceID, e)
	}
	return e
}

// owned checks that each pod's addresses are unique and on ENIs of the member.
func (m *member) owned(pods ...*node.Pod) {
	m.c.t.Helper()
	seen := map[netip.Addr]string{}
	for _, p := range pods {
		for _, a := range addressesOf(p) {
			if other, twice := seen[a]; twice {
				m.c.t.Errorf("%s and %s both have %v", p.Name, other, a)
			}
			seen[a] = p.Name
			m.owner(a)
		}
	}
}

// addressesOf lists the pod's addresses as the plugin printed them.
func addressesOf(p *node.Pod) (out []netip.Addr) {
	var result struct {
		IPs []struct {
			Address netip.Prefix `json:"address"`
		} `json:"ips"`
	}
	if err := json.Unmarshal(p.Result, &result); err != nil {
		return nil
	}
	for _, ip := range result.IPs {
		out = append(out, ip.Address.Addr())
	}
	return out
}

// remove deletes pods through the plugin, and their objects.
func (m *member) remove(pods ...*node.Pod) {
	m.c.t.Helper()
	m.c.del(m.Node, pods, 4)
	for _, p := range pods {
		m.c.api.DeletePod(m.c.t, p.Namespace, p.Name)
	}
}

// changed lists the successful mutating EC2 calls.
func (c *cluster) changed() (out []string) {
	for _, call := range c.world.Calls() {
		if !strings.HasPrefix(call.Action, "Describe") {
			out = append(out, call.Action)
		}
	}
	return out
}

// file reads a file in the member, "" if it does not exist.
func (m *member) file(path string) string {
	m.c.t.Helper()
	f, err := m.Open(path, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		m.c.t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		m.c.t.Fatal(err)
	}
	return string(data)
}

// probe asks the daemon's health service, as kubelet does.
func (m *member) probe(service string) (serving bool) {
	m.c.t.Helper()
	binary, err := filepath.Abs(filepath.Join(m.c.binaries, "grpc-health-probe"))
	if err != nil {
		m.c.t.Fatal(err)
	}
	r, err := m.Exec(agent.Cmd{Argv: []string{binary, "-addr=unix://" + node.GRPCSocket, "-service=" + service, "-connect-timeout=5s", "-rpc-timeout=5s"}})
	if err != nil {
		m.c.t.Fatal(err)
	}
	const notServing = 4
	if r.Code != 0 && r.Code != notServing {
		m.c.t.Fatalf("health probe of %q: exit status %d: %s", service, r.Code, r.Stderr)
	}
	return r.Code == 0
}

// evented reports whether an event with a given reason exists for an object, and returns its note.
func (c *cluster) evented(kind, name, reason string) (note string, ok bool) {
	c.t.Helper()
	all, err := c.objects(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range all.Items {
		regarding, _ := e.Object["regarding"].(map[string]any)
		if e.Object["reason"] == reason && regarding["kind"] == kind && regarding["name"] == name {
			note, _ = e.Object["note"].(string)
			return note, true
		}
	}
	return "", false
}

// addressIn checks that there is at least one address and that all are in a subnet.
func (c *cluster) addressIn(what string, subnet netip.Prefix, addresses ...netip.Addr) {
	c.t.Helper()
	if len(addresses) == 0 {
		c.t.Errorf("%s: no address", what)
	}
	for _, a := range addresses {
		if !subnet.Contains(a) {
			c.t.Errorf("%s: %v is not in %v", what, a, subnet)
		}
	}
}

// ipv6Prefixes lists the /80s of the member.
func (m *member) ipv6Prefixes() (out []netip.Prefix) {
	for _, e := range m.enis() {
		out = append(out, e.IPv6Prefixes...)
	}
	return out
}

// sandboxOf is a pod whose kind of network the plugin does not support yet. The test calls the
// daemon instead and creates the host links by which the daemon sees that the pod runs.
type sandboxOf struct {
	m       *member
	pod     *corev1.Pod
	request *cniwire.AddRequest
	reply   *cniwire.AddReply
}

// ask requests addresses for a new pod: one of each card if every is set.
func (m *member) ask(name string, every bool) *sandboxOf {
	m.c.t.Helper()
	s := &sandboxOf{m: m, pod: m.bind(name)}
	s.request = m.request(s.pod)
	s.request.RequiresMultiNIC = every
	s.reply = m.c.wireAdd(m.Node, s.request)
	if s.reply.Success {
		s.link()
	}
	return s
}

// addresses lists the addresses that the pod got.
func (s *sandboxOf) addresses() (out []netip.Addr) {
	for _, a := range s.reply.Allocations {
		text := a.IPv4
		if text == "" {
			text = a.IPv6
		}
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// link creates the pod's host links, with a route to each address.
func (s *sandboxOf) link() {
	for i, a := range s.addresses() {
		name := netnames.HostVeth("eni", s.pod.Namespace, s.pod.Name, i)
		s.m.c.ip(s.m.Node, "link", "add", name, "type", "veth")
		s.m.c.ip(s.m.Node, "link", "set", name, "up")
		s.m.c.ip(s.m.Node, "route", "add", netip.PrefixFrom(a, a.BitLen()).String(), "dev", name)
	}
}

// end sends the pod's DEL and removes its links.
func (s *sandboxOf) end() *cniwire.DelReply {
	s.m.c.t.Helper()
	r := s.m.c.wireDel(s.m.Node, s.request)
	for i := range s.reply.Allocations {
		s.m.c.ip(s.m.Node, "link", "del", netnames.HostVeth("eni", s.pod.Namespace, s.pod.Name, i))
	}
	return r
}

// again repeats the ADD, in which a pod keeps its addresses.
func (s *sandboxOf) again() *cniwire.AddReply {
	s.m.c.t.Helper()
	return s.m.c.wireAdd(s.m.Node, s.request)
}

// eventCount counts the events of a kind that the member's daemon has reported since its
// start.
func (m *member) eventCount(kind introspect.EventKind) (n int) {
	m.c.t.Helper()
	reader, _ := m.c.introspection(m.Node)
	doc, err := reader.Events(m.c.t.Context(), client.Cursor{}, client.EventsOptions{})
	if err != nil {
		m.c.t.Fatal(err)
	}
	for _, e := range doc.Items {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// removeENIConfig deletes an ENIConfig and waits until the member's daemon has noticed.
func (m *member) removeENIConfig(eniConfig string) {
	c := m.c
	c.t.Helper()
	before := m.eventCount(introspect.EventENIConfigFailed)
	defer testenv.Eventually(c.t, "the daemon has seen it", func() bool { return m.eventCount(introspect.EventENIConfigFailed) > before })
	if err := c.objects(eniConfigs).Delete(c.t.Context(), eniConfig, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}
