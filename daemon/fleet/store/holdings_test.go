package store

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// TestHoldings: what nodes hold in a /28 adds up to what the subnet's map shows of it.
func TestHoldings(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 1))
	s, now := New(), time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	for node := range 20 {
		var enis []introspect.NodeENI
		var summary introspect.Summary
		for e := range 3 {
			eni := introspect.NodeENI{ID: fmt.Sprintf("eni-%d-%d", node, e), SubnetID: "subnet-1", CIDRs: []introspect.NodeCIDR{}}
			for range 1 + r.IntN(9) {
				eni.CIDRs = append(eni.CIDRs, introspect.NodeCIDR{
					CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(r.IntN(4)), byte(r.IntN(256))}), 32), Total: 1, Assigned: r.IntN(2),
				})
			}
			eni.Total = len(eni.CIDRs)
			enis = append(enis, eni)
			summary.ENIs = append(summary.ENIs, introspect.ENISummary{ID: eni.ID, SubnetID: "subnet-1", Total: eni.Total})
		}
		summary.Subnets = []introspect.Subnet{{ID: "subnet-1", CIDR: "10.0.0.0/22"}}
		s.PutAt(document.NodeIPAM{
			Metadata: document.ObjectMeta{Name: fmt.Sprintf("n%d", node)}, State: document.StateLive, SampledAt: &now, Summary: &summary, ENIs: enis,
			Object: &document.NodeObject{InternalIP: fmt.Sprintf("10.0.%d.%d", r.IntN(4), r.IntN(256))},
		}, now)
	}
	v := s.View()
	sums, nodes := map[netip.Prefix]Block{}, map[netip.Prefix]map[string]bool{}
	for _, h := range v.Holdings("subnet-1") {
		b := sums[h.Prefix]
		if b.Use == 0 || h.Use < b.Use {
			b.Use = h.Use
		}
		b.Held, b.Used = b.Held+h.Held, b.Used+h.Used
		sums[h.Prefix] = b
		if nodes[h.Prefix] == nil {
			nodes[h.Prefix] = map[string]bool{}
		}
		if nodes[h.Prefix][h.Node.Metadata.Name] {
			t.Errorf("%s has %s twice", h.Node.Metadata.Name, h.Prefix)
		}
		nodes[h.Prefix][h.Node.Metadata.Name] = true
	}
	blocks := v.Subnets[0].Blocks
	if len(blocks) < 30 || len(blocks) != len(sums) {
		t.Fatalf("%d blocks, %d by node", len(blocks), len(sums))
	}
	for _, b := range blocks {
		if got := sums[b.Prefix]; got.Use != b.Use || got.Held != b.Held || got.Used != b.Used || !nodes[b.Prefix][b.Node] {
			t.Errorf("%+v, by node %+v", b, got)
		}
	}
	pools := 0
	for _, e := range v.Nodes[0].Summary.ENIs {
		pools += e.Total
	}
	if n := v.Nodes[0].HeldIn("subnet-1"); n != pools+3 || v.Nodes[0].HeldIn("subnet-2") != 0 || len(v.Holdings("subnet-2")) > 0 {
		t.Errorf("%d held, %d by the pool", n, pools)
	}
}
