package store

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// wire returns a sample as read from a node: it shares no strings with other samples.
func wire(tb testing.TB, n document.NodeIPAM) document.NodeIPAM {
	tb.Helper()
	text, err := json.Marshal(n)
	if err != nil {
		tb.Fatal(err)
	}
	var out document.NodeIPAM
	if err := json.Unmarshal(text, &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// addressed is a node with all addresses known: three ENIs, twenty pods.
func addressed(i int, at time.Time) document.NodeIPAM {
	n := big(i, at)
	for e := range 3 {
		eni := introspect.NodeENI{ID: n.Summary.ENIs[e].ID, SubnetID: n.Summary.ENIs[e].SubnetID, Device: e, Total: 9, Assigned: 7, Free: 2}
		for a := range 9 {
			addr := netip.AddrFrom4([4]byte{10, byte(i >> 5), byte(i<<3 | e), byte(16*e + a)})
			c := introspect.NodeCIDR{CIDR: netip.PrefixFrom(addr, 32), Total: 1}
			if a < 7 {
				c.Assigned = 1
				c.Addresses = []introspect.NodeAddress{{Address: addr, State: introspect.AddressAssigned, PodNamespace: "checkout", PodName: fmt.Sprintf("checkout-frontend-7d9f8b6c5d-%05d", i*27+e*9+a), AssignedAt: &at}}
			}
			eni.CIDRs = append(eni.CIDRs, c)
		}
		n.ENIs = append(n.ENIs, eni)
	}
	return n
}

// heap returns the bytes in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// held measures a node's share of a store in which every node has a full history.
func held(tb testing.TB, nodes int, make func(int, time.Time) document.NodeIPAM) (bytes int, s *Store) {
	tb.Helper()
	before := heap()
	s = New()
	for i := range HistoryLen {
		at := after(i * 10)
		for j := range nodes {
			if i == 0 || i == HistoryLen-1 || j%50 == i%50 {
				s.PutAt(wire(tb, make(j, at)), at)
				continue
			}
			n := *s.nodes[j] // as if not read, except for the history
			n.History = n.History.add(point(&n, at))
			s.nodes[j] = &n
		}
		s.View()
	}
	return int(heap()-before) / nodes, s
}

// BenchmarkMemory measures the memory per node.
func BenchmarkMemory(b *testing.B) {
	for name, make := range map[string]func(int, time.Time) document.NodeIPAM{"summary": big, "addresses": addressed} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				bytes, s := held(b, 1000, make)
				b.ReportMetric(float64(bytes), "B/node")
				runtime.KeepAlive(s)
			}
		})
	}
}
