package e2e_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/node"
)

var noRange netip.Prefix

// hasRules reports whether the kernel has a policy rule for an address.
func (s watched) hasRules(a netip.Addr) bool {
	return strings.Contains(s.ip(s.n, "rule"), a.String()+" ")
}

// missedDELs are the rows of TestReconcile_MissedDEL. The nightly run has those that take a minute.
var missedDELs = map[string]func(t *testing.T){
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
}

// TestReconcile_MissedDEL: a pod's namespace is removed and no DEL ever comes.
func TestReconcile_MissedDEL(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, missedDELs, func(t *testing.T, run func(*testing.T)) { run(t) })
}

// ended waits until the addresses of ended pods are free and their rules removed.
func (s watched) ended(pods []*node.Pod, within time.Duration) {
	s.t.Helper()
	s.within(within, "the end of pods without DEL", func() bool {
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
		if err := s.n.Ping(p.IP, testenv.Left(s.t)); err != nil {
			s.t.Errorf("%s: %v", p.Name, err)
		}
	}
}
