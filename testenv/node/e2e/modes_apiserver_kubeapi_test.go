package e2e_test

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// TestModes_APIServer: nothing waits for an API server that is absent, slow or silent, and what
// it reports takes effect at once.
func TestModes_APIServer(t *testing.T) {
	t.Parallel()
	absent := func(m *member) error { return m.proxy.Refuse() }
	rowsAtOnce(t, map[string]func(*testing.T){
		"absent at the start":                   func(t *testing.T) { apiServerAtStart(t, absent) },
		"silent at the start":                   func(t *testing.T) { apiServerAtStart(t, func(m *member) error { return m.proxy.Hang() }) },
		"slow":                                  func(t *testing.T) { apiServerAtStart(t, func(m *member) error { return m.proxy.Slow(time.Second) }) },
		"absent at the start, and pods need it": func(t *testing.T) { apiServerNeeded(t, absent) },
		"gone and back":                         apiServerGone,
		"coming and going":                      apiServerFlaps,
		"another endpoint":                      apiServerEndpoint,
		"pods are expected":                     podsExpected,
	}, func(t *testing.T, row func(*testing.T)) { row(t) })
}

// allows gives a Node a pod capacity that no instance type has.
func allows(pods int) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Capacity[corev1.ResourcePods] = *resource.NewQuantity(int64(pods), resource.DecimalSI)
	}
}

// maxPods waits until the daemon has a given limit from a given source.
func (m *member) maxPods(want int, source string) {
	m.c.t.Helper()
	testenv.Eventually(m.c.t, fmt.Sprintf("max-pods %d of %s", want, source), func() bool {
		got := m.summary().MaxPods
		return got.Value != nil && *got.Value == want && got.Source == source
	})
}

func (m *member) restore() {
	m.c.t.Helper()
	if err := m.proxy.Restore(); err != nil {
		m.c.t.Fatal(err)
	}
}

// promptly bounds what must not wait for an API server: upstream waits 30 s for one, and there
// is none until the test ends the trouble.
const promptly = 25 * time.Second

// apiServerAtStart: before the API server has answered, the daemon serves from the metadata, and
// after a restart from its checkpoint.
func apiServerAtStart(t *testing.T, trouble func(*member) error) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"}, allows(23))
	start := func() {
		t.Helper()
		if err := trouble(m); err != nil {
			t.Fatal(err)
		}
		testenv.Within(t, promptly, "the daemon's start", func() { m.start(map[string]string{"WARM_IP_TARGET": "2"}) })
	}
	start()
	if most := m.summary().MaxPods; most.Source != "node" && (*most.Value != 29 || most.Source != "instance-type") {
		t.Errorf("max-pods %d of %s", *most.Value, most.Source)
	}
	pod := m.bind("p")
	var address string
	testenv.Within(t, promptly, "the ADD", func() { address = m.gave(m.add(pod)) })
	m.restore()
	m.maxPods(23, "node")

	c.kill(m.Node, syscall.SIGKILL)
	start()
	if again := m.gave(m.add(pod)); again != address {
		t.Errorf("the pod of before has %s, had %s", again, address)
	}
	if r := m.del(pod); !r.Success || r.Allocations[0].IPv4 != address {
		t.Errorf("%+v", r)
	}
	m.restore()
	m.maxPods(23, "node")
}

// apiServerNeeded: only an ADD that needs the pod object waits for the API server, and says so;
// upstream exits or does not start.
func apiServerNeeded(t *testing.T, trouble func(*member) error) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m)
	if err := trouble(m); err != nil {
		t.Fatal(err)
	}
	m.start(groupsForPods(map[string]string{"CNI_ADD_WAIT": "1s"}))
	pod := m.bind("p")
	r := m.failsWith(pod, "pod-unknown", "Send AddNetworkReply: Failed to get pod:")
	if !r.Transient {
		t.Errorf("%+v", r)
	}
	m.holdsNone()
	m.restore()
	testenv.Eventually(c.t, "pods are served", func() bool { return m.add(pod).Success })
	m.withTrunk()
}

// apiServerGone: pods come and go while the API server is down, and changes to the Node during
// that time take effect afterwards.
func apiServerGone(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"}, allows(110))
	m.start(map[string]string{"WARM_IP_TARGET": "1", "IP_COOLDOWN_PERIOD": "0"})
	m.maxPods(110, "node")
	if err := m.proxy.Refuse(); err != nil {
		t.Fatal(err)
	}
	m.logged("API server unreachable, continuing with cached objects")
	var pods []*corev1.Pod
	for i := range 12 { // more than an ENI holds
		pods = append(pods, m.bind(fmt.Sprintf("p-%d", i)))
		m.gave(m.add(pods[i]))
	}
	for _, pod := range pods[:6] {
		if r := m.del(pod); !r.Success {
			t.Errorf("%+v", r)
		}
	}
	if s := m.summary(); s.Cordoned == nil || *s.Cordoned || *s.MaxPods.Value != 110 {
		t.Errorf("the Node's state was forgotten: cordoned %v, max-pods %d", s.Cordoned, *s.MaxPods.Value)
	}
	c.mergePatch(nodeObjects, "", m.name, map[string]any{"spec": map[string]any{"unschedulable": true, "taints": []any{
		map[string]any{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
	}}})
	m.restore()
	testenv.Eventually(c.t, "the daemon knows that its node is cordoned", func() bool { s := m.summary(); return s.Cordoned != nil && *s.Cordoned })
	c.settled(m.Node)
	// New sandboxes: the daemon expects pods without an address, and the pool grows for them even
	// now. Had they been deleted, the daemon could learn it late.
	for _, pod := range pods[:6] {
		m.gave(m.add(pod))
	}
	c.settled(m.Node)
	// A pool that keeps an address ready would grow for the last of these pods.
	for range m.summary().Cards[0].Free {
		m.gave(m.addMore())
	}
	c.settled(m.Node)
	if card := m.summary().Cards[0]; card.Free != 0 {
		t.Errorf("the pool of a cordoned node has grown: %+v", card)
	}
}

// apiServerFlaps: repeated failures must not leak anything.
func apiServerFlaps(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"}, allows(100))
	m.start(map[string]string{"WARM_IP_TARGET": "1"})
	m.maxPods(100, "node")
	gauge := func(name string) float64 {
		t.Helper()
		v, err := strconv.ParseFloat(value(c.scrape(m.Node), name), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	pods := 50
	round := func() {
		t.Helper()
		for _, trouble := range []func() error{
			m.proxy.Refuse, m.proxy.Hang, func() error { m.proxy.Cut(); return nil }, func() error { return m.proxy.Slow(50 * time.Millisecond) },
		} {
			if err := trouble(); err != nil {
				t.Fatal(err)
			}
			m.gave(m.addMore())
			m.restore()
			pods++
			c.mergePatch(nodeObjects, "", m.name, map[string]any{"status": map[string]any{"capacity": map[string]any{"pods": strconv.Itoa(pods)}}}, "status")
			m.maxPods(pods, "node")
		}
	}
	round() // opens the connections that stay open, including those to EC2
	goroutines, memory, files := gauge("go_goroutines"), gauge("process_resident_memory_bytes"), gauge("process_open_fds")
	for range 3 {
		round()
	}
	// Requests of the last round may still be ending.
	testenv.Eventually(c.t, "as many goroutines as before", func() bool { return gauge("go_goroutines") <= goroutines+5 })
	testenv.Eventually(c.t, "as many open files as before", func() bool { return gauge("process_open_fds") <= files+3 })
	if now := gauge("process_resident_memory_bytes"); now > memory+16<<20 {
		t.Errorf("the daemon has %.1f MiB, had %.1f", now/(1<<20), memory/(1<<20))
	}
}

// apiServerEndpoint: CLUSTER_ENDPOINT takes precedence over the kubeconfig's server.
func apiServerEndpoint(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"}, allows(23))
	listener, err := m.NS.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := c.api.Proxy(t, listener)
	if err := m.proxy.Refuse(); err != nil {
		t.Fatal(err)
	}
	m.start(map[string]string{"CLUSTER_ENDPOINT": "https://" + other.Addr()})
	m.maxPods(23, "node")
}

// podsExpected: the daemon knows the pods bound to its node before their ADDs, and has
// addresses ready for them.
func podsExpected(t *testing.T) {
	const count = 30
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.xlarge"}) // 4 ENIs of 14
	var pods []*corev1.Pod
	for i := range count {
		pods = append(pods, m.bind(fmt.Sprintf("p-%d", i)))
	}
	for i, not := range []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		func(p *corev1.Pod) { p.Spec.NodeName = m.name + "-other" },
	} {
		for j := range 10 {
			m.bind(fmt.Sprintf("not-%d-%d", i, j), not)
		}
	}
	m.start(map[string]string{"WARM_IP_TARGET": "1"})
	addresses := func() (n int) {
		for _, e := range c.world.ENIsOf(m.InstanceID) {
			n += len(e.SecondaryIPs)
		}
		return n
	}
	testenv.Eventually(c.t, "addresses for the pods that have not asked", func() bool { return addresses() >= count })
	c.settled(m.Node)
	if got := addresses(); got > count+1 {
		t.Errorf("%d addresses for %d pods and one to spare", got, count)
	}
	replies := make(chan *cniwire.AddReply, count)
	each(count, 10, func(i int) { replies <- m.add(pods[i]) })
	for range count {
		m.gave(<-replies)
	}
	if missed := value(c.scrape(m.Node), "awscni_no_available_ip_addresses"); missed != "0" && missed != "" {
		t.Errorf("%s ADDs found the pool dry", missed)
	}
}
