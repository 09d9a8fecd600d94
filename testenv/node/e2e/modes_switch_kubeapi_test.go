package e2e_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// switching is a node in use whose mode is changed: its pods keep their addresses and reach
// each other, whatever the mode for new pods.
type switching struct {
	*cluster
	m    *member
	pods []*node.Pod
}

// to restarts the daemon in another mode, runs a pod and checks all earlier ones.
func (s *switching) to(what string, env ...string) *node.Pod {
	s.t.Helper()
	s.restart(env...)
	return s.add(what)
}

func (s *switching) restart(env ...string) {
	s.t.Helper()
	s.m.restart(with(map[string]string{"IP_COOLDOWN_PERIOD": "0", "WARM_IP_TARGET": "1", "MINIMUM_IP_TARGET": "1", "CNI_ADD_WAIT": "60s"}, env...))
}

func (s *switching) add(what string) *node.Pod {
	s.t.Helper()
	p := s.m.run(what, 1)[0]
	s.pods = append(s.pods, p)
	s.lives(what)
	return p
}

// lives checks that the pods are unchanged, including their entries in the daemon's file.
func (s *switching) lives(what string) {
	s.t.Helper()
	s.m.owned(s.pods...)
	kept, err := s.m.Allocations()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range s.pods {
		if !slices.ContainsFunc(kept, func(a node.Allocation) bool { return a.ContainerID == p.ContainerID && a.IPv4 == p.IP }) {
			s.t.Errorf("%s: %s with %v is not among %v", what, p.Name, p.IP, kept)
		}
		if err := s.m.Ping(p.IP, testenv.Left(s.t)); err != nil {
			s.t.Errorf("%s: %s at %v: %v", what, p.Name, p.IP, err)
		}
		if err := p.Ping(s.m.Primary.PrimaryIP, testenv.Left(s.t)); err != nil {
			s.t.Errorf("%s: from %s: %v", what, p.Name, err)
		}
	}
}

// TestModes_Switch switches the modes of a node in use, one after the other. Pods keep
// their addresses, unused addresses of the old mode are released to EC2, nothing is lost.
func TestModes_Switch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, fakeaws.Options{})
	podSubnet, larger := c.ipv4Subnet(32, nil), c.ipv4Subnet(64, map[string]string{"kubernetes.io/role/cni": "1"})
	if _, err := c.world.Occupy(c.subnet.ID, 100); err != nil { // so that discovery prefers the larger subnet
		t.Fatal(err)
	}
	c.eniConfig(c.namespace, podSubnet.ID)
	s := &switching{cluster: c, m: c.join(fakeaws.InstanceSpec{Type: "m5.large"}, annotated(c.namespace))}
	primary := func() fakeaws.ENI { return s.m.enis()[0] }
	s.m.start(map[string]string{"WARM_IP_TARGET": "5", "IP_COOLDOWN_PERIOD": "0"})
	s.pods = s.m.run("first", 2)
	testenv.Eventually(c.t, "a reserve of single addresses", func() bool { return len(primary().SecondaryIPs) == 7 })

	// Prefixes: single addresses without pods are released. A pod that comes before that may get one.
	s.restart("ENABLE_PREFIX_DELEGATION=true")
	testenv.Eventually(c.t, "a prefix in place of the single addresses", func() bool { return len(primary().Prefixes) > 0 && len(primary().SecondaryIPs) == 2 })
	p := s.add("prefixes")
	if !slices.ContainsFunc(primary().Prefixes, containing(p)) {
		t.Errorf("%v is in no prefix of %v", p.IP, primary().Prefixes)
	}
	more := s.m.run("prefixed", 17)
	testenv.Eventually(c.t, "a second prefix", func() bool { return len(primary().Prefixes) >= 2 })
	s.lives("prefixes")
	s.m.remove(more...)

	// And back: prefixes that contain a pod's address stay, the others are released.
	s.to("single")
	testenv.Eventually(c.t, "prefixes given back", func() bool {
		return !slices.ContainsFunc(primary().Prefixes, func(prefix netip.Prefix) bool {
			return !slices.ContainsFunc(s.pods, func(p *node.Pod) bool { return prefix.Contains(p.IP) })
		})
	})
	s.lives("single")

	// Custom networking on: new pods in the ENIConfig's subnet.
	p = s.to("custom", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true")
	c.addressIn("custom networking", podSubnet.CIDR, p.IP)

	// And off: the ENI stays in use, and the primary one is used again. Some of the next pods
	// may get addresses of the prefix that stayed, but the warm target requests more anyway.
	s.to("plain", "WARM_IP_TARGET=5")

	// Discovery: an ENI is created in the subnet with most addresses, and stays in use when
	// discovery is off again.
	var crowd []*node.Pod // how many need it depends on the addresses that the prefix still has
	testenv.Eventually(c.t, "an ENI in the larger subnet", func() bool {
		there := len(c.enisIn(s.m, larger.ID)) == 1
		if !there {
			crowd = append(crowd, s.m.run(fmt.Sprintf("crowd-%d", len(crowd)), 1)...)
		}
		return there
	})
	s.m.remove(crowd...)
	s.to("undiscovered", "ENABLE_SUBNET_DISCOVERY=false", "MINIMUM_IP_TARGET=27")
	if n := len(c.enisIn(s.m, larger.ID)); n != 1 {
		t.Errorf("%d ENIs in the subnet that was discovered before", n)
	}

	s.m.remove(s.pods...)
	c.nothingLeft(s.m.Node)
	if left := c.unattached(); len(left) > 0 {
		t.Errorf("ENIs attached nowhere: %v", left)
	}
}

// containing matches prefixes that contain a pod's address.
func containing(p *node.Pod) func(netip.Prefix) bool {
	return func(prefix netip.Prefix) bool { return prefix.Contains(p.IP) }
}
