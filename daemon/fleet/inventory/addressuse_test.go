package inventory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// eniOf is an ENI of a subnet with free addresses, and one of each of these pods, NAMESPACE/NAME.
func eniOf(id, subnet string, free int, pods ...introspect.PodRef) introspect.NodeENI {
	e := introspect.NodeENI{ID: id, SubnetID: subnet, Free: free, Assigned: len(pods), Total: free + len(pods)}
	e.CIDRs = []introspect.NodeCIDR{}
	for i, p := range pods {
		a := netip.AddrFrom4([4]byte{10, byte(len(id)), byte(id[len(id)-1]), byte(i)})
		of := introspect.NodeAddress{Address: a, State: introspect.AddressAssigned, PodNamespace: p.Namespace, PodName: p.Name}
		e.CIDRs = append(e.CIDRs, introspect.NodeCIDR{
			CIDR: netip.PrefixFrom(a, 32), Total: 1, Assigned: 1, Addresses: []introspect.NodeAddress{of},
		})
	}
	return e
}

func nodeOf(name, group string, at time.Time, enis ...introspect.NodeENI) document.NodeIPAM {
	n := document.NodeIPAM{
		Metadata: document.ObjectMeta{Name: name}, State: document.StateLive, Source: document.SourceSummary, SampledAt: &at, ENIs: enis,
		Object:  &document.NodeObject{Labels: map[string]string{"eks.amazonaws.com/nodegroup": group}},
		Summary: &introspect.Summary{Cards: []introspect.CardSummary{{}}},
	}
	for _, e := range enis {
		c := &n.Summary.Cards[0]
		c.Total, c.Assigned, c.Free = c.Total+e.Total, c.Assigned+e.Assigned, c.Free+e.Free
		n.Summary.ENIs = append(n.Summary.ENIs, introspect.ENISummary{
			ID: e.ID, SubnetID: e.SubnetID, Total: e.Total, Assigned: e.Assigned, Free: e.Free,
		})
	}
	return n
}

func podRef(namespace, name string) introspect.PodRef {
	return introspect.PodRef{Namespace: namespace, Name: name}
}

// TestUses: the free addresses of a node, or of its ENIs in a subnet, are shared out by the addresses
// that pods have; those of a node without pods are shared by none.
func TestUses(t *testing.T) {
	t.Parallel()
	s := store.New()
	s.PutAt(nodeOf("a", "blue", t0,
		eniOf("eni-1", "subnet-1", 4, podRef("shop", "cart-1"), podRef("shop", "cart-2"), podRef("data", "db-0")),
		eniOf("eni-2", "subnet-2", 4, podRef("shop", "web"))), t0)
	s.PutAt(nodeOf("b", "green", t0, eniOf("eni-3", "subnet-1", 5)), t0)
	s.PutAt(nodeOf("c", "green", t0, eniOf("eni-4", "subnet-1", 0, podRef("data", "db-1"), podRef("", ""))), t0)
	owner := func(_ string, p introspect.PodRef) string {
		return map[string]string{
			"cart-1": "Deployment/cart", "cart-2": "Deployment/cart", "db-0": "StatefulSet/db", "db-1": "StatefulSet/db",
		}[p.Name]
	}
	use := func(namespace, name string, assigned int, warm float64, nodes int) AddressUse {
		return AddressUse{UseKey{namespace, name}, assigned, warm, nodes}
	}
	for name, x := range map[string]struct {
		of   Summing
		want []AddressUse
	}{
		"namespace": {Summing{By: ByNamespace}, []AddressUse{use("", "shop", 3, 6, 1), use("", "data", 2, 2, 2), use("", "", 1, 5, 1)}},
		"of one":    {Summing{By: ByNamespace, Namespace: "data"}, []AddressUse{use("", "data", 2, 2, 2)}},
		"owner": {Summing{By: ByOwner, Owner: owner}, []AddressUse{
			use("shop", "Deployment/cart", 2, 4, 1), use("data", "StatefulSet/db", 2, 2, 2), use("", "", 1, 5, 1), use("shop", "", 1, 2, 1),
		}},
		"group":          {Summing{By: ByGroup}, []AddressUse{use("", "blue", 4, 8, 1), use("", "green", 2, 5, 2)}},
		"subnet":         {Summing{By: BySubnet}, []AddressUse{use("", "subnet-1", 5, 9, 3), use("", "subnet-2", 1, 4, 1)}},
		"node":           {Summing{By: ByNode}, []AddressUse{use("", "a", 4, 8, 1), use("", "c", 2, 0, 1), use("", "b", 0, 5, 1)}},
		"node, of one":   {Summing{By: ByNode, Namespace: "data"}, []AddressUse{use("", "a", 1, 2, 1), use("", "c", 1, 0, 1)}},
		"subnet, of one": {Summing{By: BySubnet, Namespace: "shop"}, []AddressUse{use("", "subnet-1", 2, 4*2/3., 1), use("", "subnet-2", 1, 4, 1)}},
	} {
		if diff := cmp.Diff(x.want, x.of.Uses(s.View().Nodes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestInSubnet(t *testing.T) {
	t.Parallel()
	s := store.New()
	s.PutAt(nodeOf("a", "", t0,
		eniOf("eni-1", "subnet-1", 0, podRef("shop", "x"), podRef("data", "y")), eniOf("eni-2", "subnet-2", 0, podRef("data", "z"))), t0)
	s.PutAt(nodeOf("b", "", t0, eniOf("eni-3", "subnet-1", 0, podRef("shop", "w"))), t0)
	want := []document.NamespaceUse{{Namespace: "shop", Assigned: 2, Nodes: 2}, {Namespace: "data", Assigned: 1, Nodes: 1}}
	if diff := cmp.Diff(want, InSubnet(s.View().Nodes, "subnet-1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUses_AddUp: whatever they are summed up by, all addresses count once.
func TestUses_AddUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 4))
	for range 50 {
		s, assigned, free := store.New(), 0, 0
		for i := range 1 + r.IntN(8) {
			var enis []introspect.NodeENI
			for e := range 1 + r.IntN(3) {
				var pods []introspect.PodRef
				for p := range r.IntN(6) {
					pods = append(pods, podRef(fmt.Sprintf("ns-%d", r.IntN(3)), fmt.Sprintf("p-%d-%d-%d", i, e, p)))
				}
				enis = append(enis, eniOf(fmt.Sprintf("eni-%d%d", i, e), fmt.Sprintf("subnet-%d", r.IntN(2)), r.IntN(5), pods...))
				assigned, free = assigned+len(pods), free+enis[e].Free
			}
			s.PutAt(nodeOf(fmt.Sprintf("n%d", i), "g", t0, enis...), t0)
		}
		for _, by := range Bys() {
			of := Summing{By: by, Owner: func(_ string, p introspect.PodRef) string { return "Pod/" + p.Name[:3] }}
			gotAssigned, gotWarm := 0, 0.
			for _, u := range of.Uses(s.View().Nodes) {
				gotAssigned, gotWarm = gotAssigned+u.Assigned, gotWarm+u.Warm
			}
			if gotAssigned != assigned || math.Abs(gotWarm-float64(free)) > 1e-9 {
				t.Errorf("by %s: %d assigned of %d, %v free of %d", by, gotAssigned, assigned, gotWarm, free)
			}
		}
	}
}

// TestHours: the time for which each namespace had addresses, and how many it had at the beginning. A
// node that is not read counts as before, one that left does not. Before its addresses are read, a node's
// are divided as then.
func TestHours(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		namespace    string
		hours, start map[UseKey]float64
	}{
		"all": {
			"", map[UseKey]float64{{Name: "shop"}: 2*.5 + 1.5 + 2*2*3/4., {Name: "data"}: .75 + 2*2/4., {}: 2},
			map[UseKey]float64{{Name: "shop"}: 2 + 2*3/4., {Name: "data"}: 1 + 2/4., {}: 1},
		},
		"one": {"data", map[UseKey]float64{{Name: "data"}: .75 + 2*2/4.}, map[UseKey]float64{{Name: "data"}: 1 + 2/4.}},
	} {
		h := NewHours(Summing{By: ByNamespace, Namespace: x.namespace}, t0)
		s := store.New()
		sample := func(minutes int, n document.NodeIPAM) {
			when := t0.Add(time.Duration(minutes) * time.Minute)
			s.PutAt(n, when)
			h.Sample(n.Metadata.Name, s.Node(n.Metadata.Name), when)
		}
		without := func(n document.NodeIPAM) document.NodeIPAM { n.ENIs = nil; return n }
		sample(0, nodeOf("a", "", t0, eniOf("eni-1", "subnet-1", 0, podRef("shop", "x"), podRef("shop", "y"))))
		sample(0, nodeOf("b", "", t0, eniOf("eni-2", "subnet-1", 0, podRef("data", "z"))))
		sample(0, without(nodeOf("late", "", t0, eniOf("eni-3", "subnet-1", 0, podRef("", ""), podRef("", "")))))
		sample(0, without(nodeOf("never", "", t0, eniOf("eni-4", "subnet-1", 0, podRef("", "")))))
		sample(30, nodeOf("a", "", t0, eniOf("eni-1", "subnet-1", 0, podRef("shop", "x"))))
		sample(40, document.NodeIPAM{
			Metadata: document.ObjectMeta{Name: "a"}, State: document.StateUnreachable, Error: &document.NodeError{Reason: introspect.ReasonTimeout},
		})
		h.Sample("b", nil, t0.Add(45*time.Minute))
		sample(120, nodeOf("late", "", t0,
			eniOf("eni-3", "subnet-1", 0, podRef("shop", "1"), podRef("shop", "2"), podRef("shop", "3"), podRef("data", "4"))))
		hours, start := h.End(t0.Add(2 * time.Hour))
		if diff := cmp.Diff(x.hours, hours); diff != "" {
			t.Errorf("%s: hours (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(x.start, start); diff != "" {
			t.Errorf("%s: at the beginning (-want +got):\n%s", name, diff)
		}
	}
}
