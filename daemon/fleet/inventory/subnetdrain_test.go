package inventory

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/doctor/evidence"
)

// heldBy is a node with these CIDRs, all of them of pods, on one ENI in 10.0.0.0/24.
func heldBy(s *store.Store, name, own string, cidrs ...string) {
	now := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	e := introspect.NodeENI{ID: "eni-" + name, SubnetID: "subnet-1", CIDRs: []introspect.NodeCIDR{}}
	for _, c := range cidrs {
		p := netip.MustParsePrefix(c)
		n := 1 << (32 - p.Bits())
		e.CIDRs = append(e.CIDRs, introspect.NodeCIDR{CIDR: p, Total: n, Assigned: n})
		e.Total, e.Assigned = e.Total+n, e.Assigned+n
	}
	free := 40
	s.PutAt(document.NodeIPAM{
		Metadata: document.ObjectMeta{Name: name}, State: document.StateLive, SampledAt: &now, ENIs: []introspect.NodeENI{e},
		Object: &document.NodeObject{InternalIP: own, InstanceID: "i-" + name},
		Summary: &introspect.Summary{
			Cards:   []introspect.CardSummary{{Total: e.Total, Assigned: e.Assigned}},
			ENIs:    []introspect.ENISummary{{ID: e.ID, SubnetID: "subnet-1", Total: e.Total, Assigned: e.Assigned}},
			Subnets: []introspect.Subnet{{ID: "subnet-1", CIDR: "10.0.0.0/24", Available: &free, AsOf: &now}},
		},
	}, now)
}

func nodeNames(nodes []*store.Node) (out []string) {
	for _, n := range nodes {
		out = append(out, n.Metadata.Name)
	}
	return out
}

// TestDrain: a block is free once all of its nodes are gone, with their ENIs' own addresses; blocks with
// addresses of EC2's or of others never are.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := store.New()
	heldBy(s, "a", "10.0.0.17", "10.0.0.33/32", "10.0.0.3/32") // its own address is in 10.0.0.16/28
	heldBy(s, "b", "10.0.0.49", "10.0.0.34/32", "10.0.0.80/28")
	heldBy(s, "c", "10.0.0.65", "10.0.0.18/32")
	v := s.View()
	m := SubnetMapOf(v, v.Subnets[0])
	for _, x := range []struct {
		want            int
		nodes           string
		possible, pods  int
		held, warm, new int
	}{
		{1, "[c]", 5, 1, 2, 0, 1}, // of c and b, which both do, it has fewer pods
		{2, "[b]", 5, 17, 18, 0, 17},
		{3, "[b c]", 5, 18, 20, 0, 18}, // as would a and b, with more pods
		{5, "[a b c]", 5, 20, 23, 0, 20},
		{6, "[]", 5, 0, 0, 0, 0},
	} {
		d := m.Drain(t.Context(), v.Nodes, x.want)
		if fmt.Sprint(nodeNames(d.Nodes)) != x.nodes || d.Possible != x.possible || d.Pods != x.pods || d.Addresses != x.held ||
			d.Warm != x.warm || d.New() != x.new || d.Least != len(d.Nodes) || d.Nodes != nil && len(d.Blocks) < x.want {
			t.Errorf("%d: %v, %+v", x.want, nodeNames(d.Nodes), d)
		}
	}
	if n := m.Unplaced(); n == nil || *n != 251-40-3-20 {
		t.Errorf("%d addresses at unknown places", *n)
	}
}

// TestWithInterfaces: with EC2's list, every address has an owner: a node's ENIs go with it, other interfaces stay.
func TestWithInterfaces(t *testing.T) {
	t.Parallel()
	s := store.New()
	heldBy(s, "a", "10.0.0.17", "10.0.0.33/32")
	heldBy(s, "b", "10.0.0.49", "10.0.0.34/32")
	v := s.View()
	addr := netip.MustParseAddr
	of := func(id, instance, primary, description string, ips ...string) evidence.Interface {
		e := evidence.Interface{
			ID: id, Instance: instance, DeleteOnTermination: true, Primary: addr(primary), Description: description,
			Type: "interface", Status: "in-use",
		}
		for _, ip := range ips {
			e.IPs = append(e.IPs, addr(ip))
		}
		return e
	}
	kept := of("eni-kept", "i-b", "10.0.0.177", "")
	kept.DeleteOnTermination = false
	prefix := of("eni-p", "i-b", "10.0.0.50", "")
	prefix.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.0.0.96/28")}
	m := SubnetMapOf(v, v.Subnets[0]).WithInterfaces([]evidence.Interface{
		of("eni-a", "i-a", "10.0.0.17", "", "10.0.0.33"), of("eni-b", "i-b", "10.0.0.49", "", "10.0.0.34"), prefix, kept,
		of("eni-lb", "", "10.0.0.113", "ELB app/shop/0123456789abcdef", "10.0.0.35"), of("eni-x", "i-other", "10.0.0.129", "aws-K8S-i-other"),
		of("eni-v6", "", "2001:db8::1", ""),
	}, v.Nodes)
	want := map[int]store.BlockUse{
		0: ReservedBlock, 1: store.BlockPrimary, 2: store.BlockMixed, 3: store.BlockPrimary, 6: store.BlockPrefix,
		7: OthersBlock, 8: OthersBlock, 11: OthersBlock, 15: ReservedBlock,
	}
	for i, c := range m.Cells {
		use, known := want[i]
		if !known {
			use = FreeBlock
		}
		if c.Use != use {
			t.Errorf("%s is %d, want %d", c.Prefix, c.Use, use)
		}
	}
	if c := m.Cells[2]; c.Held != 2 || c.Used != 2 || c.Taken() != 1 || len(m.In(c.Prefix)) != 2 {
		t.Errorf("%+v", c)
	}
	owners := []SubnetOwner{
		{"load balancer app/shop", 1, 2, 2}, {"eni-kept of b, kept when that is terminated", 1, 1, 1}, {"instance i-other", 1, 1, 1},
	}
	if got := m.Owners(); !slices.Equal(got, owners) {
		t.Errorf("%+v", got)
	}
	if d := m.Drain(t.Context(), v.Nodes, 2); fmt.Sprint(nodeNames(d.Nodes)) != "[b]" || d.Possible != 3 || d.Addresses != 1+1+1+16 {
		t.Errorf("%v, %+v", nodeNames(d.Nodes), d)
	}
	if n := m.Unplaced(); *n != 0 {
		t.Errorf("%d addresses at unknown places", *n)
	}
}

func TestOwnerOf(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]evidence.Interface{
		"load balancer net/web":                  {Description: "ELB net/web/50dc6c495c0c9188"},
		"load balancer classic":                  {Description: "ELB classic"},
		"Lambda function resize":                 {Description: "AWS Lambda VPC ENI-resize-01234567-89ab-cdef-0123-456789abcdef"},
		"NAT gateway nat-1":                      {Description: "Interface for NAT Gateway nat-1"},
		"EKS control plane of shop":              {Description: "Amazon EKS shop"},
		"branch ENIs of pods":                    {Description: "aws-k8s-branch-eni"},
		"RDS":                                    {Description: "RDSNetworkInterface"},
		"aws-K8S-i-1, attached to nothing":       {Description: "aws-K8S-i-1", Status: "available"},
		"gateway load balancer endpoint":         {Type: "gateway_load_balancer_endpoint"},
		"eni-9, attached to nothing":             {ID: "eni-9", Type: "interface", Status: "available"},
		"instance i-1":                           {Description: "ELB app/no/1", Instance: "i-1"},
		"Lambda function x":                      {Description: "AWS Lambda VPC ENI-x"},
		"transit gateway attachment tgw-attach-": {Description: "Network Interface for Transit Gateway Attachment tgw-attach-"},
	} {
		if got := ownerOf(e, nil); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
