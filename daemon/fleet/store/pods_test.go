package store

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

func TestView_Home(t *testing.T) {
	t.Parallel()
	s := New()
	for i := range 3 {
		s.PutAt(addressed(i, t0), t0)
	}
	first := addressed(1, t0).ENIs[1].CIDRs
	first[0].Addresses[0].State = introspect.AddressCooling
	for _, x := range []struct {
		name string
		pod  introspect.PodRef
		addr netip.Addr
		want string
	}{
		{"a pod", introspect.PodRef{Namespace: "checkout", Name: first[3].Addresses[0].PodName}, netip.Addr{}, big(1, t0).Metadata.Name},
		{"an address", introspect.PodRef{}, first[3].CIDR.Addr(), big(1, t0).Metadata.Name},
		{"the name in another namespace", introspect.PodRef{Namespace: "other", Name: first[3].Addresses[0].PodName}, netip.Addr{}, ""},
		{"the beginning of a name", introspect.PodRef{Namespace: "checkout", Name: "checkout-frontend"}, netip.Addr{}, ""},
		{"an address that no pod had", introspect.PodRef{}, first[8].CIDR.Addr(), big(1, t0).Metadata.Name},
		{"an address that no pod holds", introspect.PodRef{}, netip.MustParseAddr("192.0.2.1"), ""},
		{"nothing", introspect.PodRef{}, netip.Addr{}, ""},
	} {
		if got := s.View().Home(x.pod, x.addr); got != x.want {
			t.Errorf("%s: on %q, want %q", x.name, got, x.want)
		}
	}
	// A sample without addresses keeps the known ones; one of another machine drops them.
	s.PutAt(big(1, after(10)), after(10))
	if s.View().Home(introspect.PodRef{}, first[3].CIDR.Addr()) == "" {
		t.Error("a sample without addresses made the store forget them")
	}
	other := big(1, after(20))
	other.Object.InstanceID = "i-another"
	s.PutAt(other, after(20))
	if n := s.View().Home(introspect.PodRef{}, first[3].CIDR.Addr()); n != "" {
		t.Errorf("the address of a machine that is gone is on %q", n)
	}
}

func TestHome_GonePods(t *testing.T) {
	t.Parallel()
	enis := addressed(1, t0).ENIs
	enis[0].CIDRs[0].Addresses[0].State = introspect.AddressCooling
	v := &View{Nodes: []*Node{{NodeIPAM: document.NodeIPAM{Metadata: document.ObjectMeta{Name: "a"}}, addresses: addressesOf(enis, t0)}}}
	gone := enis[0].CIDRs[0].Addresses[0]
	if v.Home(introspect.PodRef{Namespace: gone.PodNamespace, Name: gone.PodName}, netip.Addr{}) != "" {
		t.Error("a pod that is gone is still at home")
	}
	if v.Home(introspect.PodRef{}, gone.Address) != "a" {
		t.Error("the address of a pod that is gone is nowhere")
	}
}

// TestStore_KeepENIs: our daemons' addresses are dropped once counted, upstream's are kept.
func TestStore_KeepENIs(t *testing.T) {
	t.Parallel()
	of := func(source string) document.NodeIPAM {
		n := addressed(1, t0)
		n.Source = source
		return n
	}
	for _, x := range []struct {
		store  *Store
		source string
		want   bool
	}{{New(), document.SourceSummary, false}, {New(), document.SourceV1, true}, {New().KeepENIs(), document.SourceSummary, true}} {
		x.store.Put(of(x.source))
		v := x.store.View()
		if got := v.Nodes[0].NodeIPAM.ENIs != nil; got != x.want {
			t.Errorf("%s: addresses are kept: %v", x.source, got)
		}
		if len(v.Subnets) == 0 || len(v.Subnets[0].Blocks) == 0 && len(v.Subnets[len(v.Subnets)-1].Blocks) == 0 {
			t.Errorf("%s: the addresses were not counted: %+v", x.source, v.Subnets)
		}
	}
}

// TestView_Holder: an address leads to the pod that has it rather than to older records, and
// a free address to the prefix or pool that holds it.
func TestView_Holder(t *testing.T) {
	t.Parallel()
	at := after(-60)
	addr := netip.MustParseAddr
	record := func(ip, state, pod string) introspect.NodeAddress {
		a := introspect.NodeAddress{Address: addr(ip), State: state, PodNamespace: "shop", PodName: pod, AssignedAt: &at}
		if state != introspect.AddressAssigned {
			a.UnassignedAt = &at
		}
		return a
	}
	of := func(cidr string, total int, records ...introspect.NodeAddress) introspect.NodeCIDR {
		return introspect.NodeCIDR{CIDR: netip.MustParsePrefix(cidr), Total: total, Addresses: records}
	}
	a, b := big(0, t0), big(1, t0)
	a.Object.InternalIP, b.Object.InternalIP = "10.0.0.4", "10.0.0.5"
	a.ENIs = []introspect.NodeENI{
		{ID: "eni-a", SubnetID: "subnet-a", CIDRs: []introspect.NodeCIDR{of("10.0.0.7/32", 1, record("10.0.0.7", introspect.AddressCooling, "gone")), of("10.0.0.8/32", 1)}},
		{ID: "eni-b", Device: 1, SubnetID: "subnet-a", CIDRs: []introspect.NodeCIDR{of("10.0.1.16/28", 16, record("10.0.1.17", introspect.AddressAssigned, "cart-1"), record("10.0.1.18", introspect.AddressFree, "old"))}},
	}
	b.ENIs = []introspect.NodeENI{{ID: "eni-c", CIDRs: []introspect.NodeCIDR{
		of("10.0.0.7/32", 1, record("10.0.0.7", introspect.AddressAssigned, "cart-2")),
		of("fd00::/80", 1<<48, record("fd00::1", introspect.AddressAssigned, "cart-3")),
	}}}
	s := New()
	s.PutAt(a, t0)
	s.PutAt(b, t0)
	s.PutAt(big(2, t0), t0)
	windows := big(3, t0)
	windows.State, windows.Summary, windows.Object = document.StateNoDaemon, nil, &document.NodeObject{OS: "windows"}
	s.PutAt(windows, t0)
	if v := s.View(); v.Unread() != 1 || !slices.Equal(v.UnreadFirst(9), []string{big(2, t0).Metadata.Name}) || v.UnreadFirst(0) != nil {
		t.Errorf("%d unread: %q", v.Unread(), v.UnreadFirst(9))
	}
	type where struct{ node, eni, state, pod, cidr string }
	for ip, want := range map[string]where{
		"10.0.1.17":        {a.Metadata.Name, "eni-b", introspect.AddressAssigned, "shop/cart-1", "10.0.1.16/28"},
		"::ffff:10.0.1.17": {a.Metadata.Name, "eni-b", introspect.AddressAssigned, "shop/cart-1", "10.0.1.16/28"},
		"10.0.1.18":        {a.Metadata.Name, "eni-b", introspect.AddressFree, "", "10.0.1.16/28"},
		"10.0.1.30":        {a.Metadata.Name, "eni-b", introspect.AddressFree, "", "10.0.1.16/28"},
		"10.0.0.8":         {a.Metadata.Name, "eni-a", introspect.AddressFree, "", "10.0.0.8/32"},
		"10.0.0.7":         {b.Metadata.Name, "eni-c", introspect.AddressAssigned, "shop/cart-2", "10.0.0.7/32"},
		"10.0.0.5":         {b.Metadata.Name, "", "own", "", ""},
		"fd00::1":          {b.Metadata.Name, "eni-c", introspect.AddressAssigned, "shop/cart-3", "fd00::/80"},
		"fd00::99":         {b.Metadata.Name, "eni-c", introspect.AddressFree, "", "fd00::/80"},
		"10.0.1.32":        {},
	} {
		h, ok := s.View().Holder(addr(ip))
		got := where{}
		if ok {
			got = where{node: h.Node.Metadata.Name, eni: h.Item.ENIID, state: h.Item.State}
			if h.Own {
				got.state = "own"
			} else {
				got.cidr = h.Item.CIDR.String()
			}
			if h.Item.PodName != "" {
				got.pod = h.Item.PodNamespace + "/" + h.Item.PodName
			}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", ip, got, want)
		}
	}
	if h, _ := s.View().Holder(addr("10.0.1.17")); !h.Item.AssignedAt.Equal(at) || h.Item.SubnetID != "subnet-a" || h.Item.Device != 1 {
		t.Errorf("%+v", h.Item)
	}
	if _, ok := (*View)(nil).Holder(addr("10.0.1.17")); ok {
		t.Error("no view holds an address")
	}

	for _, x := range []struct{ namespace, name, want string }{
		{"shop", "cart-1", "shop/cart-1"}, {"", "cart-1", "shop/cart-1"}, {"shop", "cart", "shop/cart-1 shop/cart-2 shop/cart-3"},
		{"", "cart-", "shop/cart-1 shop/cart-2 shop/cart-3"}, {"sho", "cart-1", ""}, {"shop", "art", ""}, {"shop", "gone", ""}, {"shop", "", ""},
	} {
		var got []string
		for _, p := range s.View().PodsNamed(x.namespace, x.name, 9) {
			got = append(got, p.Namespace+"/"+p.Name)
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("pods of %q that begin with %q: %q, want %q", x.namespace, x.name, got, x.want)
		}
	}

	// After a sample without addresses, ENIs keep what was read before.
	later := big(0, after(10))
	later.Summary.ENIs = []introspect.ENISummary{{ID: "eni-b", Device: 1, Total: 16, Assigned: 9}, {ID: "eni-new", Device: 2, Total: 4, Flags: []string{introspect.ENIFlagTrunk}}}
	s.PutAt(later, after(10))
	n := s.View().Node(a.Metadata.Name)
	enis := n.Interfaces()
	if len(enis) != 2 || enis[0].Assigned != 9 || len(enis[0].CIDRs) != 1 || enis[0].SubnetID != "subnet-a" || enis[1].CIDRs != nil || !enis[1].Trunk {
		t.Errorf("%+v", enis)
	}
	if pods := n.Pods(nil); len(pods) != 1 || pods[0].PodName != "cart-1" || !n.AddressesAt().Equal(t0) {
		t.Errorf("%+v, read at %s", pods, n.AddressesAt())
	}
}

// BenchmarkHolder searches for an address among 5,000 nodes of twenty pods each.
func BenchmarkHolder(b *testing.B) {
	s := New()
	for i := range 5000 {
		s.PutAt(addressed(i, t0), t0)
	}
	v := s.View()
	for b.Loop() {
		if _, ok := v.Holder(netip.MustParseAddr("192.0.2.1")); ok {
			b.Fatal("found")
		}
	}
}
