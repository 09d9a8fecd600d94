package inventory

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/show"
)

var t0 = time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)

func at(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }

// put samples a node with one ENI that has these addresses, of pods in namespace shop.
func put(s *store.Store, name string, when time.Time, pods map[string]string) {
	e := introspect.NodeENI{ID: "eni-1", Device: 1, SubnetID: "subnet-1", CIDRs: []introspect.NodeCIDR{}}
	for ip, pod := range pods {
		a := netip.MustParseAddr(ip)
		e.CIDRs = append(e.CIDRs, introspect.NodeCIDR{CIDR: netip.PrefixFrom(a, 32), Total: 1, Addresses: []introspect.NodeAddress{
			{Address: a, State: introspect.AddressAssigned, PodNamespace: "shop", PodName: pod, AssignedAt: &t0},
		}})
	}
	s.PutAt(document.NodeIPAM{
		Metadata: document.ObjectMeta{Name: name}, State: document.StateLive, Source: document.SourceSummary, SampledAt: &when,
		Summary: &introspect.Summary{
			Cards:    []introspect.CardSummary{{Total: len(pods), Assigned: len(pods)}},
			Backoffs: []introspect.Backoff{{Scope: "subnet", ID: "subnet-1", Cause: "subnet-exhausted", Until: when.Add(time.Minute)}},
		},
		ENIs: []introspect.NodeENI{e},
	}, when)
}

func (f *Pods) text() (rows []string) {
	f.Differ = f.Join(func(of []*Pod) {
		for _, r := range of {
			since := show.Since(r.Since, r.At)
			cells := []string{r.Full, show.OrUnknown(r.Node), r.State, show.OrUnknown(r.Address), show.OrUnknown(PodKind(r)), since, NamedReason(r.Reason)}
			rows = append(rows, strings.TrimSpace(strings.Join(cells, " ")))
		}
	})
	return rows
}

func TestFleet(t *testing.T) {
	t.Parallel()
	s := store.New()
	put(s, "a", t0, map[string]string{"10.0.0.1": "has"})
	put(s, "b", t0, map[string]string{"10.0.0.2": "full"})
	s.PutAt(document.NodeIPAM{Metadata: document.ObjectMeta{Name: "c"}, State: document.StateUnreachable, Error: &document.NodeError{Reason: introspect.ReasonTimeout}}, t0)
	s.PutAt(document.NodeIPAM{Metadata: document.ObjectMeta{Name: "d"}, State: document.StateNoDaemon, Object: &document.NodeObject{OS: "windows"}}, t0)
	pod := func(node, name, ip string) watch.Pod {
		p := watch.Pod{PodRef: ref(name), Node: node, Phase: "Pending"}
		if ip != "" {
			p.Phase, p.IPs = "Running", []string{ip}
		}
		return p
	}
	unbound := pod("", "unbound", "")
	unbound.Reason = "Unschedulable: 0/4 nodes are available"
	f := &Pods{View: s.View(), Now: at(60), Kube: &watch.ClusterPods{At: at(-1), Pods: []watch.Pod{
		pod("a", "has", "10.0.0.1"), pod("a", "waits", ""), pod("b", "full", "10.0.0.2"), pod("b", "waits", ""),
		pod("c", "silent", "10.0.0.3"), pod("d", "windows", "10.0.0.4"), unbound, pod("not-read", "elsewhere", "10.0.0.5"),
	}}}
	want := []string{
		"shop/has a assigned 10.0.0.1 secondary 60s",
		"shop/waits a waiting - - - ip/subnet-exhausted: back-off on subnet-1: the subnet has no free addresses",
		"shop/full b assigned 10.0.0.2 secondary 60s",
		"shop/waits b waiting - - - ip/subnet-exhausted: no free addresses",
		"shop/silent c assigned 10.0.0.3 - - its node could not be read: timeout",
		"shop/windows d assigned 10.0.0.4 - - no aws-node runs on its node",
		"shop/unbound - waiting - - - obs/pod-unschedulable: not scheduled to a node yet: Unschedulable: 0/4 nodes are available",
	}
	f.Why = map[string]PodWhy{"b": {Failures: []introspect.Failure{{Pod: ref("waits"), Cause: "subnet-exhausted", Detail: "no free addresses"}}}}
	if diff := cmp.Diff(want, f.text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f.View.Unread() != 1 {
		t.Errorf("%d nodes are unread", f.View.Unread())
	}
}

// TestFleet_NotReadAtOnce: Kubernetes and a node are read one after the other. A difference
// counts once the node is read after the list, and keeps counting.
func TestFleet_NotReadAtOnce(t *testing.T) {
	t.Parallel()
	s := store.New()
	put(s, "a", at(0), map[string]string{"10.0.0.1": "gone"})
	f := &Pods{View: s.View(), Now: at(10), Kube: &watch.ClusterPods{At: at(10), Pods: []watch.Pod{{PodRef: ref("new"), Node: "a", Phase: "Running", IPs: []string{"10.0.0.9"}}}}}
	apart := []string{"shop/gone a assigned 10.0.0.1 secondary 10s", "shop/new a assigned 10.0.0.9 - -"}
	if diff := cmp.Diff(apart, f.text()); diff != "" {
		t.Errorf("the node was read before the list (-want +got):\n%s", diff)
	}
	put(s, "a", at(20), map[string]string{"10.0.0.1": "gone"})
	f.View = s.View()
	differ := []string{
		"shop/gone a left-over 10.0.0.1 secondary 10s Kubernetes has no such pod on the node: its DEL is missing or still to come",
		"shop/new a unknown 10.0.0.9 - - the daemon holds no address for it",
	}
	if diff := cmp.Diff(differ, f.text()); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	kube := *f.Kube
	kube.At, f.Kube = at(30), &kube
	if diff := cmp.Diff(differ, f.text()); diff != "" {
		t.Errorf("listed again (-want +got):\n%s", diff)
	}
	put(s, "a", at(40), map[string]string{"10.0.0.9": "new"})
	f.View = s.View()
	if diff := cmp.Diff([]string{"shop/new a assigned 10.0.0.9 secondary 10s"}, f.text()); diff != "" || len(f.Differ) != 0 {
		t.Errorf("agreed (-want +got):\n%s%v", diff, f.Differ)
	}
	recorded := kube
	recorded.At, f.Kube, f.Differ = time.Time{}, &recorded, nil
	f.Kube.Pods = nil
	if diff := cmp.Diff([]string{"shop/new a assigned 10.0.0.9 secondary 10s"}, f.text()); diff != "" {
		t.Errorf("of a recording, which does not say when (-want +got):\n%s", diff)
	}
}
