// Package branch_test runs pods with branch ENIs for real: the built daemon and plugin, the
// API server with a VPC resource controller, and VLANs that lead to a VPC. If the kernel
// lacks 802.1q, everything but the API server runs in a virtual machine.
package branch_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnictl/deploy"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/aws/vpcrc"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// denial is how long no answer means that there is none. The guest's CPUs are emulated, and all
// nodes of a test share them.
const denial = 2 * time.Second

// podENI is both the resource that a pod requests and the annotation that it gets.
const podENI = "vpc.amazonaws.com/pod-eni"

// Security group enforcing modes.
const (
	strict   = "strict"
	standard = "standard"
)

// lab is a VPC with an API server.
type lab struct {
	t         *testing.T
	world     *fakeaws.World
	fabric    *vpc.Fabric
	subnet    fakeaws.Subnet
	api       *kubeapi.Server
	namespace string
	binaries  string
	ipv6      bool
}

func newLab(t *testing.T) *lab {
	t.Helper()
	testenv.RequireKernel(t, "veth", "vlan", "iptables")
	l := &lab{t: t, world: fakeaws.NewWorld(fakeaws.Options{}), binaries: os.Getenv("CNI_TEST_BIN")}
	if l.binaries == "" {
		l.binaries = filepath.Join("..", "..", "..", "bin")
	}
	for _, name := range []string{node.DaemonBinary, node.PluginBinary} {
		if _, err := os.Stat(filepath.Join(l.binaries, name)); err != nil {
			t.Fatalf("built binaries are missing; run: make build: %v", err)
		}
	}
	t.Cleanup(l.world.Close)
	v := l.world.AddVPC(netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	var err error
	l.subnet, err = l.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: v.ID, CIDR: netip.MustParsePrefix("10.1.0.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1::/64"), AssignIPv6: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if l.fabric, err = vpc.NewFabric(vpc.Options{World: l.world}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.fabric.Close(); err != nil {
			t.Error(err)
		}
	})
	l.api = kubeapi.Shared(t)
	l.namespace = l.api.Name(t)
	l.api.CreateNamespace(t, l.namespace)
	return l
}

// member is a node with its Node object and, if it joined, a daemon and a controller.
type member struct {
	*node.Node
	l     *lab
	mode  string
	proxy *kubeapi.Proxy
	name  string // of the Node
	rc    *vpcrc.Controller
}

// host boots an instance that is not a node of the cluster.
func (l *lab) host() *node.Node {
	l.t.Helper()
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		l.t.Fatal(err)
	}
	dir := l.t.TempDir()
	n, err := node.Start(l.t.Context(), node.Options{Fabric: l.fabric, World: l.world, InstanceID: i.ID, Dir: dir, Binaries: l.binaries})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if l.t.Failed() {
			for file, text := range n.Logs() {
				l.t.Logf("%s of %s:\n%s", file, n.Name, text[max(0, len(text)-8_000):])
			}
		}
		if err := n.Close(); err != nil {
			l.t.Error(err)
		}
	})
	return n
}

// join boots a node that runs pods in the given mode, and waits until it has its trunk.
func (l *lab) join(mode string, faults vpcrc.Faults) *member {
	l.t.Helper()
	m := &member{Node: l.host(), l: l, mode: mode}
	policy := "aws-node-ipv4"
	if l.ipv6 {
		policy = "aws-node-ipv6"
	}
	document, err := deploy.IAM(policy)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.world.SetPolicy(m.InstanceID, string(document)); err != nil {
		l.t.Fatal(err)
	}
	m.name = l.namespace + "-" + m.InstanceID[len(m.InstanceID)-6:]
	l.api.CreateNode(l.t, m.name, func(n *corev1.Node) { n.Spec.ProviderID = "aws:///" + m.Primary.AZ + "/" + m.InstanceID })
	listener, err := m.NS.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	m.proxy = l.api.Proxy(l.t, listener)
	m.rc, err = vpcrc.Start(l.t.Context(), vpcrc.Options{
		Objects: l.api.Objects(), World: l.world, Node: m.name, Scale: 0.1, Timing: vpcrc.Timing{BranchAfter: -1}, Faults: faults,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(m.rc.Stop)
	m.start(nil)
	testenv.Eventually(l.t, "a trunk", func() bool { return m.trunk().ID != "" })
	return m
}

// start starts the daemon in the member's mode.
func (m *member) start(more map[string]string) {
	m.l.t.Helper()
	env := map[string]string{
		"MY_NODE_NAME": m.name, "KUBECONFIG": m.proxy.Kubeconfig(m.l.t, "aws-node"),
		"ENABLE_POD_ENI": "true", "POD_SECURITY_GROUP_ENFORCING_MODE": m.mode, "WARM_IP_TARGET": "1", "CNI_ADD_WAIT": "60s", "HTTP_TIMEOUT": "60",
	}
	if m.l.ipv6 {
		maps.Copy(env, map[string]string{"ENABLE_IPv4": "false", "ENABLE_IPv6": "true", "ENABLE_PREFIX_DELEGATION": "true", "WARM_IP_TARGET": ""})
	}
	maps.Copy(env, more)
	ctx := testenv.Context(m.l.t)
	// Restart it as kubelet does: on a busy machine the metadata service, in the same emulated
	// guest, may not answer within the daemon's timeout of a few seconds.
	for {
		if err := m.StartDaemon(env); err != nil {
			m.l.t.Fatal(err)
		}
		serving := m.WaitServing(ctx)
		if serving == nil {
			return
		}
		if _, err := m.DaemonEnded(ctx); err != nil {
			m.l.t.Fatal(serving)
		}
		m.l.t.Logf("the daemon is started again: %v", serving)
	}
}

// restart restarts the daemon in another mode.
func (m *member) restart(mode string) {
	m.l.t.Helper()
	ctx := testenv.Context(m.l.t)
	if _, err := m.StopDaemon(ctx, syscall.SIGTERM); err != nil {
		m.l.t.Fatal(err)
	}
	m.mode = mode
	m.start(nil)
}

// trunk returns the member's trunk ENI, the zero value if none.
func (m *member) trunk() fakeaws.ENI {
	for _, e := range m.l.world.ENIsOf(m.InstanceID) {
		if e.Type == "trunk" {
			return e
		}
	}
	return fakeaws.ENI{}
}

// branch is the branch ENI that a pod's annotation announces.
type branch struct {
	MAC  string `json:"ifAddress"`
	IPv4 string `json:"privateIp"`
	IPv6 string `json:"ipv6Addr"`
	VLAN int    `json:"vlanId"`
}

func (b branch) device() string { return fmt.Sprintf("vlan.eth.%d", b.VLAN) }
func (b branch) table() string  { return fmt.Sprint(100 + b.VLAN) }

// branchPod is a pod with a branch ENI.
type branchPod struct {
	*node.Pod
	m     *member
	bound *corev1.Pod
	branch
}

// bind creates a pod that gets a branch ENI and waits for its annotation.
func (m *member) bind(name string) *branchPod {
	m.l.t.Helper()
	p := &branchPod{m: m}
	p.bound = m.l.api.CreatePod(m.l.t, m.l.namespace, name, m.name, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{podENI: resource.MustParse("1")}
	})
	testenv.Eventually(m.l.t, "the announcement of "+name, func() bool {
		o, err := m.l.api.Objects().Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).
			Namespace(m.l.namespace).Get(m.l.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			m.l.t.Fatal(err)
		}
		var all []branch
		if text := o.GetAnnotations()[podENI]; text == "" || json.Unmarshal([]byte(text), &all) != nil {
			return false
		}
		p.branch = all[0]
		return true
	})
	return p
}

// run runs a pod with a branch ENI.
func (m *member) run(name string) *branchPod {
	m.l.t.Helper()
	p := m.bind(name)
	var err error
	if p.Pod, err = m.AddPod(p.spec()); err != nil {
		m.l.t.Fatal(err)
	}
	if want := p.IPv4; !m.l.ipv6 && p.IP.String() != want {
		m.l.t.Errorf("%s has %s, announced was %s", name, p.IP, want)
	}
	return p
}

func (p *branchPod) spec() node.PodSpec {
	return node.PodSpec{
		Namespace: p.bound.Namespace, Name: p.bound.Name, UID: string(p.bound.UID), Config: map[string]any{"podSGEnforcingMode": p.m.mode},
	}
}

// ordinary runs a pod that gets its address from the pool.
func (m *member) ordinary(name string) *node.Pod {
	m.l.t.Helper()
	bound := m.l.api.CreatePod(m.l.t, m.l.namespace, name, m.name)
	p, err := m.AddPod(node.PodSpec{Namespace: bound.Namespace, Name: name, UID: string(bound.UID), Config: map[string]any{"podSGEnforcingMode": m.mode}})
	if err != nil {
		m.l.t.Fatal(err)
	}
	return p
}

// forget deletes a pod's object, upon which the controller deletes the branch ENI.
func (p *branchPod) forget() { p.m.l.api.DeletePod(p.m.l.t, p.bound.Namespace, p.bound.Name) }

// end deletes pods with branch ENIs as kubelet does: after the API server shows the deletion.
func (m *member) end(pods ...*branchPod) {
	m.l.t.Helper()
	for _, p := range pods {
		p.forget()
		m.endSandbox(p.Pod)
	}
}

// endSandbox deletes sandboxes, without deleting the pods' objects.
func (m *member) endSandbox(pods ...*node.Pod) {
	m.l.t.Helper()
	for _, p := range pods {
		if err := m.DelPod(p); err != nil {
			m.l.t.Error(err)
		}
	}
}

// nothingLeft checks that no pod left anything behind.
func (m *member) nothingLeft() {
	m.l.t.Helper()
	ctx := testenv.Context(m.l.t)
	left, err := m.Leftovers(ctx)
	if err != nil {
		m.l.t.Fatal(err)
	}
	for _, what := range left {
		m.l.t.Errorf("left on %s: %s", m.Name, what)
	}
}

// ip runs the ip program in the node.
func (m *member) ip(args ...string) string {
	m.l.t.Helper()
	return m.exec("ip", args...)
}

func (m *member) exec(program string, args ...string) string {
	m.l.t.Helper()
	r, err := m.Exec(agent.Cmd{Argv: append([]string{"/usr/bin/env", program}, args...), Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil || r.Code != 0 {
		m.l.t.Fatalf("%s %v: %v, exit status %d: %s", program, args, err, r.Code, r.Stderr)
	}
	return string(r.Stdout)
}

// sysctl sets a sysctl in the node.
func (m *member) sysctl(name, value string) {
	m.l.t.Helper()
	if err := m.NS.Do(func() error { return os.WriteFile("/proc/sys/"+name, []byte(value), 0) }); err != nil {
		m.l.t.Fatal(err)
	}
}

// pinger is anything that can ping: a pod or a host.
type pinger interface {
	Ping(to netip.Addr, timeout time.Duration) error
}

// reaches expects an answer to every ping; the pings run in parallel.
func (l *lab) reaches(what string, pairs ...pair) {
	l.t.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(pairs))
	for i, p := range pairs {
		all.Go(func() { errs[i] = p.from.Ping(p.to, testenv.Left(l.t)) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			l.t.Errorf("%s: %s: %v", what, pairs[i].name, err)
		}
	}
}

type pair struct {
	name string
	from pinger
	to   netip.Addr
}

// rules returns the lines of "ip rule" that begin with a priority.
func (m *member) rules(priority string, args ...string) (out []string) {
	m.l.t.Helper()
	for line := range strings.Lines(m.ip(append(args, "rule")...)) {
		if rest, ok := strings.CutPrefix(line, priority+":\t"); ok {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	return out
}
