//go:build nightly

package e2e_test

import (
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/netnames"
)

func init() {
	maps.Copy(missedDELs, map[string]func(t *testing.T){
		// A young pod is kept: its link might still appear.
		"of a young pod": func(t *testing.T) {
			s := newWatched(t, "m5.large", nil)
			pods := s.mustAdd(s.n, "p", 4, 4)
			added := time.Now()
			if err := s.n.RemoveSandbox(pods[3]); err != nil {
				t.Fatal(err)
			}
			s.seen(1)
			if age := time.Since(added); age < 50*time.Second && !s.assigned(s.n)[pods[3].IP] { //realtime: a lower bound
				t.Errorf("given up %v after its ADD", age)
			}
			s.ended(pods[3:], 2*time.Minute)
			if age := time.Since(added); age < 59*time.Second { //realtime: a lower bound
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
				t.Fatalf("%s is not kept over a restart %v after its ADD", a, time.Since(added)) //realtime: reported
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
			s.within(2*time.Minute, "the address is free", func() bool { return !s.assigned(s.n)[a] })
			if age := time.Since(added); age < 59*time.Second { //realtime: a lower bound
				t.Errorf("given up %v after its ADD", age)
			}
		},
	})
}
