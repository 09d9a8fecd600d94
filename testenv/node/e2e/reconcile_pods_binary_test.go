package e2e_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv/node"
)

var noRange netip.Prefix

// hasRules reports whether the kernel has a policy rule for an address.
func (s watched) hasRules(a netip.Addr) bool {
	return strings.Contains(s.ip(s.n, "rule"), a.String()+" ")
}

// TestReconcile_MissedDEL: a pod's namespace is removed and no DEL ever comes.
func TestReconcile_MissedDEL(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, map[string]func(t *testing.T){
		// The pod is minutes old: two checks some seconds apart are enough.
		"of an old pod": func(t *testing.T) {
			s := newWatched(t, "m5.large", nil)
			pods := s.mustAdd(s.n, "p", 12, 4)
			s.settled(s.n)
			s.kill(s.n, 9)
			s.age(s.n)
			s.start(s.n, s.env)
			for _, p := range pods[10:] {
				if err := s.n.RemoveSandbox(p); err != nil {
					t.Fatal(err)
				}
			}
			s.ended(pods[10:], noticedWithin)
			s.living(pods[:10])
			s.del(s.n, pods[:10], 4)
			s.nothingLeft(s.n)
		},
		// A young pod is kept: its link might still appear.
		"of a young pod": func(t *testing.T) {
			s := newWatched(t, "m5.large", nil)
			pods := s.mustAdd(s.n, "p", 4, 4)
			added := time.Now()
			if err := s.n.RemoveSandbox(pods[3]); err != nil {
				t.Fatal(err)
			}
			s.seen(1)
			if age := time.Since(added); age < 50*time.Second && !s.assigned(s.n)[pods[3].IP] {
				t.Errorf("given up %v after its ADD", age)
			}
			s.ended(pods[3:], 2*time.Minute)
			if age := time.Since(added); age < 59*time.Second {
				t.Errorf("given up %v after its ADD", age)
			}
			s.living(pods[:3])
			s.del(s.n, pods[:3], 1)
			s.nothingLeft(s.n)
		},
		// The ADD is answered, and daemon and plugin die before the link exists.
		"of a pod whose link never came": func(t *testing.T) {
			s := newWatched(t, "m5.large", nil)
			r := sandbox(1)
			reply := s.wireAdd(s.n, r)
			s.kill(s.n, 9)
			if !reply.Success {
				t.Fatalf("%+v", reply)
			}
			a, added := netip.MustParseAddr(reply.Allocations[0].IPv4), time.Now()
			if strings.Contains(s.ip(s.n, "-o", "link"), netnames.HostVeth("eni", r.PodNamespace, r.PodName, 0)) {
				t.Fatal("the pod has a link")
			}
			s.start(s.n, s.env)
			if !s.assigned(s.n)[a] {
				t.Fatalf("%s is not kept over a restart %v after its ADD", a, time.Since(added))
			}
			again := s.wireAdd(s.n, r)
			if !again.Success || again.Allocations[0].IPv4 != a.String() {
				t.Errorf("the ADD made again got %+v, want %s", again, a)
			}
			for _, p := range s.mustAdd(s.n, "p", 8, 4) {
				if p.IP == a {
					t.Errorf("%s got %s, which another has", p.Name, a)
				}
			}
			s.untilWithin(2*time.Minute, "the address is free", func() bool { return !s.assigned(s.n)[a] })
			if age := time.Since(added); age < 59*time.Second {
				t.Errorf("given up %v after its ADD", age)
			}
		},
	}, func(t *testing.T, run func(*testing.T)) { run(t) })
}

// ended waits until the addresses of ended pods are free and their rules removed.
func (s watched) ended(pods []*node.Pod, within time.Duration) {
	s.t.Helper()
	s.untilWithin(within, "the end of pods without DEL", func() bool {
		held := s.assigned(s.n)
		for _, p := range pods {
			if held[p.IP] {
				return false
			}
		}
		return true
	})
	reported := map[netip.Addr]bool{}
	for _, e := range s.events() {
		if e.Kind == introspect.EventMissedDEL && e.Pod != nil && e.Pod.Name != "" {
			reported[e.Address] = true
		}
	}
	for _, p := range pods {
		if !reported[p.IP] {
			s.t.Errorf("no event reports the end of %s", p.Name)
		}
		if s.hasRules(p.IP) {
			s.t.Errorf("%s is free, and rules of %s are left:\n%s", p.IP, p.Name, s.ip(s.n, "rule"))
		}
	}
	s.logSays(pods[0].IP.String(), "allocation released: its pod no longer has a link")
}

// living checks that pods have lost nothing.
func (s watched) living(pods []*node.Pod) {
	s.t.Helper()
	held := s.assigned(s.n)
	for _, p := range pods {
		if !held[p.IP] {
			s.t.Errorf("%s has lost %s", p.Name, p.IP)
		}
		if err := s.n.Ping(p.IP, patience); err != nil {
			s.t.Errorf("%s: %v", p.Name, err)
		}
	}
}
