package e2e_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/notice"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// annotated creates a Node that selects an ENIConfig.
func annotated(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations = map[string]string{"k8s.amazonaws.com/eniConfig": name} }
}

var customNetworking = map[string]string{
	"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true", "WARM_IP_TARGET": "1", "CNI_ADD_WAIT": "3s",
}

// TestModes_CustomNetworking: new ENIs are created as the node's ENIConfig says, also after
// it changes, and pods get no address of the primary ENI.
func TestModes_CustomNetworking(t *testing.T) {
	t.Parallel()
	t.Run("pods", testCustomPods)
	t.Run("unusable", testCustomUnusable)
}

func testCustomPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t, fakeaws.Options{})
	podSubnet, otherSubnet := c.ipv4Subnet(32, nil), c.ipv4Subnet(64, nil)
	group, otherGroup := c.world.AddSecurityGroup(c.subnet.VPCID, "pods"), c.world.AddSecurityGroup(c.subnet.VPCID, "others")
	name := c.namespace
	m := c.join(fakeaws.InstanceSpec{Type: "t3.small"}, annotated(name))
	primary := m.enis()[0]
	// A launch template put addresses on the primary ENI.
	if _, err := c.world.Assign(primary.ID, fakeaws.AssignSpec{Count: 2}); err != nil {
		t.Fatal(err)
	}
	m.start(customNetworking)

	// Without the ENIConfig the ADD's error says what is missing.
	first := m.bind("first")
	if r := m.add(first); r.Success || r.Cause != "eniconfig-missing" || !strings.Contains(r.Detail, name) {
		t.Fatalf("without an ENIConfig: %+v", r)
	}
	c.eniConfig(name, podSubnet.ID, group)
	testenv.Eventually(c.t, "an ENI in the ENIConfig's subnet", func() bool { return len(c.enisIn(m, podSubnet.ID)) == 1 })
	c.gives(podSubnet, m.add(first))
	c.grouped(m, podSubnet, group)

	// A real pod has traffic over the ENI in the other subnet.
	pod := m.run("real", 1)[0]
	c.addressIn("pod", podSubnet.CIDR, pod.IP)
	if err := pod.Ping(m.Primary.PrimaryIP, testenv.Left(t)); err != nil {
		t.Error(err)
	}

	// The ENIConfig changes: existing ENIs stay as they are.
	c.eniConfig(name, otherSubnet.ID, otherGroup)
	testenv.Eventually(c.t, "the daemon has seen it", func() bool { return m.eventCount(introspect.EventENIConfigUsed) == 2 })
	testenv.Eventually(c.t, "the next ENI in the changed subnet", func() bool {
		if r := m.addMore(); !r.Success {
			t.Fatalf("%+v", r)
		}
		return len(c.enisIn(m, otherSubnet.ID)) == 1
	})
	c.grouped(m, podSubnet, group)
	c.grouped(m, otherSubnet, otherGroup)
	// As many more pods as the two ENIs have addresses for: none is on the primary.
	for range 2*3 - 1 {
		if r := m.addMore(); r.Success && c.subnet.CIDR.Contains(netip.MustParseAddr(r.Allocations[0].IPv4)) {
			t.Errorf("a pod on the primary ENI: %+v", r)
		}
	}
	if now, _ := c.world.ENI(primary.ID); len(now.SecondaryIPs) != 2 || !slices.Equal(now.SecurityGroups, primary.SecurityGroups) {
		t.Errorf("the primary ENI was changed: %+v", now)
	}
}

// gives checks that a pod got an address of a subnet.
func (c *cluster) gives(subnet fakeaws.Subnet, r *cniwire.AddReply) {
	c.t.Helper()
	if !r.Success || !subnet.CIDR.Contains(netip.MustParseAddr(r.Allocations[0].IPv4)) {
		c.t.Errorf("want an address of %s: %+v", subnet.CIDR, r)
	}
}

// grouped checks the security groups of the member's ENIs in a subnet.
func (c *cluster) grouped(m *member, subnet fakeaws.Subnet, groups ...string) {
	c.t.Helper()
	for _, e := range c.enisIn(m, subnet.ID) {
		if !slices.Equal(e.SecurityGroups, groups) {
			c.t.Errorf("%s in %s has the groups %v, want %v", e.ID, subnet.ID, e.SecurityGroups, groups)
		}
	}
}

// testCustomUnusable: an unusable ENIConfig is reported to pods as the cause, and in an event on
// the node and the pod; the next good one is used at once.
func testCustomUnusable(t *testing.T) {
	t.Parallel()
	c := newCluster(t, fakeaws.Options{})
	good := c.ipv4Subnet(32, nil)
	elsewhere := c.addSubnet(fakeaws.SubnetSpec{CIDR: netip.MustParsePrefix("10.1.48.0/20"), AZ: "us-west-2b"})
	name := c.namespace
	m := c.join(fakeaws.InstanceSpec{Type: "t3.small"}, annotated(name))
	m.start(customNetworking)
	for i, row := range []struct {
		write func()
		says  string
	}{
		{func() { c.eniConfig(name, "my-subnet") }, "my-subnet"},
		{func() { c.eniConfig(name, good.ID, "default") }, "default"},
		{func() { c.eniConfig(name, elsewhere.ID) }, elsewhere.ID},
		{func() { c.eniConfig(name, "subnet-0123456789abcdef0") }, "subnet-0123456789abcdef0"},
		{func() { m.removeENIConfig(name) }, name},
	} {
		row.write()
		var r *cniwire.AddReply
		pod := m.bind("refused-" + string(rune('a'+i)))
		testenv.Eventually(c.t, "an ADD that names "+row.says, func() bool {
			r = m.add(pod)
			return !r.Success && strings.Contains(r.Detail, row.says)
		})
		if r.Cause != "eniconfig-missing" || r.Transient {
			t.Errorf("%s: %+v", row.says, r)
		}
		testenv.Eventually(c.t, "an event about "+pod.Name, func() bool {
			note, ok := c.evented("Pod", pod.Name, notice.Reason(cause.ENIConfigMissing))
			return ok && strings.Contains(note, "ENIConfig")
		})
		c.api.DeletePod(t, pod.Namespace, pod.Name) // so that the pool does not grow for it later
	}
	testenv.Eventually(c.t, "an event about the node", func() bool { _, ok := c.evented("Node", m.name, notice.Reason(cause.ENIConfigMissing)); return ok })
	if did := withoutTags(c.changed()); len(did) > 0 {
		t.Errorf("EC2 was changed without a usable ENIConfig: %v", did)
	}
	c.eniConfig(name, good.ID)
	testenv.Eventually(c.t, "an ENI", func() bool { return len(c.enisIn(m, good.ID)) == 1 })
	c.gives(good, m.addMore())
	m.removeENIConfig(name) // existing ENIs remain in use, and no new ones are created
	for range 2 {
		c.gives(good, m.addMore())
	}
	if r := m.addMore(); r.Success || r.Cause != "eniconfig-missing" {
		t.Errorf("with the ENIConfig deleted and its ENI full: %+v", r)
	}
	if n := len(c.enisIn(m, good.ID)); n != 1 {
		t.Errorf("%d ENIs in the subnet of a deleted ENIConfig", n)
	}
}

// TestModes_ENIConfigSelection checks which ENIConfig a node uses.
func TestModes_ENIConfigSelection(t *testing.T) {
	t.Parallel()
	const external, key = "vpc.amazonaws.com/externalEniConfig", "k8s.amazonaws.com/eniConfig"
	c := newCluster(t, fakeaws.Options{})
	subnets := map[string]fakeaws.Subnet{}
	config := func(what string) string { return c.namespace + "-" + what }
	for i, what := range []string{"external", "annotation", "label", "default"} {
		subnets[what] = c.ipv4Subnet(32+16*i, nil)
		name := config(what)
		if what == "default" {
			name = what
		}
		c.eniConfig(name, subnets[what].ID)
	}
	type row struct {
		labels, annotations map[string]string
		env                 []string
		want                string // "" if none
	}
	rows := map[string]row{
		"external label first": {labels: map[string]string{external: config("external"), key: config("label")}, annotations: map[string]string{key: config("annotation")}, want: "external"},
		"then the annotation":  {labels: map[string]string{key: config("label")}, annotations: map[string]string{key: config("annotation")}, want: "annotation"},
		"then the label":       {labels: map[string]string{key: config("label")}, want: "label"},
		"then default":         {want: "default"},
		"other keys": {labels: map[string]string{key: config("external"), "zone": config("label")}, annotations: map[string]string{key: config("external")},
			env: []string{"ENI_CONFIG_LABEL_DEF=zone", "ENI_CONFIG_ANNOTATION_DEF=none"}, want: "label"},
		"other annotation": {labels: map[string]string{key: config("label")}, annotations: map[string]string{"example.com/e": config("annotation")},
			env: []string{"ENI_CONFIG_ANNOTATION_DEF=example.com/e"}, want: "annotation"},
		"an empty one wins": {labels: map[string]string{key: config("label")}, annotations: map[string]string{key: ""}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			own := *c.lab
			own.t = t
			mine := &cluster{lab: &own, api: c.api, namespace: c.namespace}
			m := mine.join(fakeaws.InstanceSpec{Type: "t3.small"}, func(n *corev1.Node) {
				for k, v := range r.labels {
					n.Labels[k] = v
				}
				n.Annotations = r.annotations
			})
			m.start(with(customNetworking, r.env...))
			if r.want == "" {
				if got := m.add(mine.podNamed(m, name)); got.Success || got.Cause != "eniconfig-missing" {
					t.Errorf("got %+v", got)
				}
				return
			}
			testenv.Eventually(mine.t, "an ENI as the ENIConfig says", func() bool { return len(m.enis()) == 2 })
			mine.gives(subnets[r.want], m.add(mine.podNamed(m, name)))
		})
	}

	// Live changes: labels and annotations come and go.
	m := c.join(fakeaws.InstanceSpec{Type: "t3.small"}, annotated("nowhere"))
	m.start(customNetworking)
	if r := m.addMore(); r.Success || r.Cause != "eniconfig-missing" || !strings.Contains(r.Detail, "nowhere") {
		t.Errorf("an ENIConfig that is not there: %+v", r)
	}
	m.mark(map[string]any{key: config("label")}, map[string]any{key: nil})
	testenv.Eventually(c.t, "an ENI as the label says", func() bool { return len(c.enisIn(m, subnets["label"].ID)) == 1 })
	m.mark(map[string]any{external: config("external")}, nil)
	testenv.Eventually(c.t, "the daemon has seen it", func() bool { return m.eventCount(introspect.EventENIConfigUsed) == 2 })
	testenv.Eventually(c.t, "an ENI as the other label says", func() bool {
		if r := m.addMore(); !r.Success {
			t.Fatalf("%+v", r)
		}
		return len(c.enisIn(m, subnets["external"].ID)) == 1
	})
}

// podNamed binds a pod named after a subtest.
func (c *cluster) podNamed(m *member, of string) *corev1.Pod {
	return m.bind(strings.ReplaceAll(of, " ", "-"))
}

// enisIn lists the ENIs of a member in a subnet.
func (c *cluster) enisIn(m *member, subnet string) []fakeaws.ENI {
	return slices.DeleteFunc(c.world.ENIsOf(m.InstanceID), func(e fakeaws.ENI) bool { return e.SubnetID != subnet })
}
