package store

import (
	"net/netip"
	"testing"

	"cnictl/daemon/api/introspect"
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
		{"an address of no pod", introspect.PodRef{}, first[8].CIDR.Addr(), ""},
		{"nothing", introspect.PodRef{}, netip.Addr{}, ""},
	} {
		if got := s.View().Home(x.pod, x.addr); got != x.want {
			t.Errorf("%s: on %q, want %q", x.name, got, x.want)
		}
	}
	// A sample without addresses tells nothing new of them; one of another machine does.
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

func TestPodsOf_GonePods(t *testing.T) {
	t.Parallel()
	enis := addressed(1, t0).ENIs
	enis[0].CIDRs[0].Addresses[0].State = introspect.AddressCooling
	v := &View{Nodes: []*Node{{NodeIPAM: introspect.NodeIPAM{Metadata: introspect.ObjectMeta{Name: "a"}}, pods: podsOf(enis)}}}
	gone := enis[0].CIDRs[0].Addresses[0]
	if v.Home(introspect.PodRef{Namespace: gone.PodNamespace, Name: gone.PodName}, netip.Addr{}) != "" {
		t.Error("a pod that is gone is still at home")
	}
	if v.Home(introspect.PodRef{}, gone.Address) != "a" {
		t.Error("the address of a pod that is gone is nowhere")
	}
}

// TestStore_KeepENIs: our daemons' addresses go once they are counted, upstream's stay.
func TestStore_KeepENIs(t *testing.T) {
	t.Parallel()
	of := func(source string) introspect.NodeIPAM {
		n := addressed(1, t0)
		n.Source = source
		return n
	}
	for _, x := range []struct {
		store  *Store
		source string
		want   bool
	}{{New(), introspect.SourceSummary, false}, {New(), introspect.SourceV1, true}, {New().KeepENIs(), introspect.SourceSummary, true}} {
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
