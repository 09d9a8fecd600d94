package lists

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/tui/keymap"
	"cnictl/tui/pages/pagetest"
)

// crowded is a fleet of 5,000 nodes with 58 pods each, all addresses read.
func crowded() *pagetest.Source {
	f := pagetest.NewSource(5000, 1)
	since := f.Now().Add(-time.Hour)
	for i, n := range f.View().Nodes {
		of := n.NodeIPAM
		if of.Summary == nil {
			continue
		}
		for e := range 4 {
			eni := introspect.NodeENI{ID: fmt.Sprintf("eni-%08x%09x", i, e), Device: e, SubnetID: "subnet-1"}
			for a := range []int{15, 15, 14, 14}[e] {
				addr := netip.AddrFrom4([4]byte{10, byte(i >> 6), byte(i<<2 | e), byte(a)})
				eni.CIDRs = append(eni.CIDRs, introspect.NodeCIDR{CIDR: netip.PrefixFrom(addr, 32), Total: 1, Assigned: 1, Addresses: []introspect.NodeAddress{
					{Address: addr, State: introspect.AddressAssigned, PodNamespace: "checkout", PodName: fmt.Sprintf("checkout-frontend-7d9f8b6c5d-%06d", i*58+e*15+a), AssignedAt: &since},
				}})
			}
			of.ENIs = append(of.ENIs, eni)
		}
		f.Put(of)
	}
	return f
}

// BenchmarkGather measures the background work for 290,000 pods, BenchmarkKey a key press
// with that many.
func BenchmarkGather(b *testing.B) {
	s := pagetest.Open(openPods(), crowded(), 200, 57)
	b.ReportAllocs()
	for b.Loop() {
		s.Page.(*Pods).read++
		s.Wait(11)
	}
}

func BenchmarkKey(b *testing.B) {
	s := pagetest.Open(openPods(), crowded(), 200, 57)
	s.Wait(3)
	if shown, _ := s.Page.(*Pods).List().Found(); shown < 200_000 {
		b.Fatalf("%d rows", shown)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Do([]string{keymap.Down, keymap.Up}[i/200%2])
		s.Frame()
	}
}
