package e2e_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

var ipv6Env = map[string]string{"ENABLE_IPv4": "false", "ENABLE_IPv6": "true", "ENABLE_PREFIX_DELEGATION": "true"}

// ipv6Cluster returns a cluster and its dual-stack subnet.
func ipv6Cluster(t *testing.T, tags map[string]string) (*cluster, fakeaws.Subnet) {
	c := newCluster(t, fakeaws.Options{})
	v := c.world.AddVPC(netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	s, err := c.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: v.ID, CIDR: netip.MustParsePrefix("10.2.0.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1:2::/64"), Tags: tags,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// TestModes_IPv6: one /80 of the primary ENI serves all pods, also across restarts.
func TestModes_IPv6(t *testing.T) {
	t.Parallel()
	t.Run("pods", testIPv6Pods)
	t.Run("reconcile", testIPv6Reconcile)
	t.Run("excluded primary", testIPv6Excluded)
}

func testIPv6Pods(t *testing.T) {
	t.Parallel()
	c, subnet := ipv6Cluster(t, nil)
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: subnet.ID, IPv6: true})
	m.start(ipv6Env)
	pods := []*sandboxOf{m.ask("p-0", false), m.ask("p-1", false), m.ask("p-2", false)}
	prefixes := m.ipv6Prefixes()
	if len(m.enis()) != 1 || len(prefixes) != 1 || prefixes[0].Bits() != 80 {
		t.Fatalf("%d ENIs with /80s %v, want one of each", len(m.enis()), prefixes)
	}
	var all []netip.Addr
	for _, p := range pods {
		c.addressIn(p.pod.Name, prefixes[0], p.addresses()...)
		all = append(all, p.addresses()...)
		want := &cniwire.AddReply{Success: true, Allocations: p.reply.Allocations, VPCv6CIDRs: []string{"2001:db8:1::/56"}}
		if diff := cmp.Diff(want, p.reply); diff != "" {
			t.Errorf("the reply of an IPv6 node (-want +got):\n%s", diff)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	if len(slices.Compact(all)) != len(pods) {
		t.Errorf("an address was given twice: %v", all)
	}
	if got := m.file(node.Checkpoint); strings.Count(got, `"ipv6":"2001:db8:1:2`) != len(pods) || strings.Contains(got, `"ipv4"`) {
		t.Errorf("checkpoint: %s", got)
	}
	var shown introspect.ENIs
	c.get(m.Node, introspect.PathENIs, &shown)
	for id, e := range shown["0"].ENIs {
		if cidr, ok := e.IPv6Cidrs[prefixes[0].String()]; !ok || len(cidr.IPAddresses) != len(pods) || len(e.AvailableIPv4Cidrs) > 0 {
			t.Errorf("%s shows %+v and %+v", id, e.IPv6Cidrs, e.AvailableIPv4Cidrs)
		}
	}
	state, err := m.KernelState()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(state.IPTables, "AWS-") || strings.Contains(state.NFT, "AWS-") || strings.Contains(state.NFT, "snat") {
		t.Errorf("SNAT of IPv4 on an IPv6 node:\n%s\n%s", state.IPTables, state.NFT)
	}

	m.restart(ipv6Env)
	for _, p := range pods {
		if diff := cmp.Diff(p.reply, p.again()); diff != "" {
			t.Errorf("%s after a restart (-before +after):\n%s", p.pod.Name, diff)
		}
	}
	fourth := m.ask("p-3", false)
	c.addressIn("after a restart", prefixes[0], fourth.addresses()...)
	if slices.Contains(all, fourth.addresses()[0]) {
		t.Errorf("%v is another pod's", fourth.addresses())
	}
	if r := pods[0].end(); !r.Success || r.Allocations[0].IPv6 != pods[0].addresses()[0].String() {
		t.Errorf("DEL: %+v", r)
	}
	if got := m.file(node.Checkpoint); strings.Contains(got, `"`+pods[0].addresses()[0].String()+`"`) {
		t.Errorf("%v is still in %s", pods[0].addresses(), got)
	}
	if want := []string{"AssignIpv6Addresses"}; !slices.Equal(withoutTags(c.changed()), want) {
		t.Errorf("EC2 was changed by %v, want %v", c.changed(), want)
	}
}

// withoutTags leaves out tagging calls.
func withoutTags(calls []string) []string {
	return slices.DeleteFunc(calls, func(action string) bool { return action == "CreateTags" })
}

// testIPv6Reconcile removes a node's /80, with and without assigning another one: upstream
// notices neither.
func testIPv6Reconcile(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, map[string]bool{"another added by hand": true, "none added": false}, func(t *testing.T, another bool) {
		c, subnet := ipv6Cluster(t, nil)
		m := c.join(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: subnet.ID, IPv6: true})
		m.start(ipv6Env)
		lives := m.ask("lives", false)
		primary := m.enis()[0]
		lost := primary.IPv6Prefixes[0]
		if err := c.world.Unassign(primary.ID, lost); err != nil {
			t.Fatal(err)
		}
		other, err := c.world.CreateENI(fakeaws.ENISpec{SubnetID: subnet.ID, IPv6Prefixes: 1})
		if err != nil || !slices.Equal(other.IPv6Prefixes, []netip.Prefix{lost}) {
			t.Fatalf("%v is to be somebody else's now: %+v, %v", lost, other, err)
		}
		if another {
			if _, err := c.world.Assign(primary.ID, fakeaws.AssignSpec{IPv6Prefixes: 1}); err != nil {
				t.Fatal(err)
			}
		}
		given := len(c.changed())
		c.within(noticedWithin, "a pod outside of the /80 that is gone", func() bool {
			r := m.addMore()
			return r.Success && !lost.Contains(netip.MustParseAddr(r.Allocations[0].IPv6))
		})
		if r := m.addMore(); !r.Success || lost.Contains(netip.MustParseAddr(r.Allocations[0].IPv6)) {
			t.Errorf("after that: %+v", r)
		}
		want := 1
		if another {
			want = 0
		}
		if did := c.changed()[given:]; len(did) != want {
			t.Errorf("EC2 was changed by %v, want %d calls", did, want)
		}
		if r := lives.again(); !r.Success || !slices.Equal(r.Allocations, lives.reply.Allocations) {
			t.Errorf("the pod that lived there: %+v", r)
		}
		if r := lives.end(); !r.Success {
			t.Errorf("its DEL: %+v", r)
		}
	})
}

// testIPv6Excluded: a primary ENI in an excluded subnet serves no pods; another ENI, in
// a subnet that pods may use, does.
func testIPv6Excluded(t *testing.T) {
	t.Parallel()
	c, subnet := ipv6Cluster(t, map[string]string{"kubernetes.io/role/cni": "0"})
	other, err := c.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: subnet.VPCID, CIDR: netip.MustParsePrefix("10.2.16.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1:3::/64"),
		Tags: map[string]string{"kubernetes.io/role/cni": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: subnet.ID, IPv6: true})
	m.start(ipv6Env)
	p := m.ask("p", false)
	c.addressIn("pod", other.IPv6CIDR, p.addresses()...)
	enis := m.enis()
	if len(enis) != 2 || len(enis[0].IPv6Prefixes) > 0 || len(enis[1].IPv6Prefixes) != 1 || enis[1].SubnetID != other.ID {
		t.Errorf("ENIs %+v", enis)
	}
	if len(p.reply.Allocations) != 1 || p.reply.Allocations[0].Device != 1 || p.reply.Allocations[0].RouteTable != 2 {
		t.Errorf("reply %+v", p.reply)
	}
	state, err := m.KernelState()
	if err != nil {
		t.Fatal(err)
	}
	if rule := "from " + enis[1].IPv6s[0].String() + " lookup 2"; !strings.Contains(state.Rules6, rule) {
		t.Errorf("no rule %q in\n%s", rule, state.Rules6)
	}
	testenv.Eventually(c.t, "delete-on-termination is set", m.endsWithInstance)
	want := []string{"AssignIpv6Addresses", "AttachNetworkInterface", "CreateNetworkInterface", "ModifyNetworkInterfaceAttribute"}
	if did := slices.Sorted(slices.Values(withoutTags(c.changed()))); !slices.Equal(did, want) {
		t.Errorf("EC2 was changed by %v, want %v", did, want)
	}
}
