package node

import (
	"testing"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func TestUpdate_Opens(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(open(pagetest.Prefixes)(), pagetest.Fleet(), 120, 37)
	_ = s.Frame()
	s.Do(keymap.Down, keymap.In, keymap.Subnets, keymap.Trunks, keymap.Doctor, keymap.NextPane, keymap.In)
	n := pagetest.Prefixes
	want := []pages.Open{
		{Screen: "eni", Node: n, ENI: "eni-0e5f60718293a4b5c"}, {Screen: "subnets", Node: n, Subnet: "subnet-0aa11bb22cc33dd44"},
		{Screen: "trunks", Node: n}, {Screen: "doctor", Node: n}, {Screen: "logs", Node: n},
	}
	if len(s.Opened) != len(want) {
		t.Fatalf("opened %v", s.Opened)
	}
	for i := range want {
		if s.Opened[i] != want[i] {
			t.Errorf("opened %+v, want %+v", s.Opened[i], want[i])
		}
	}
}

func TestUpdate_Asks(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(open(pagetest.Plain)(), pagetest.Fleet(), 120, 37)
	if len(s.Asked) != 1 || s.Asked[0].Want != watch.WantENIs|watch.WantPlan|watch.WantEvents {
		t.Fatalf("asked %+v", s.Asked)
	}
	s.Wait(9)
	if len(s.Asked) != 1 {
		t.Errorf("asked again after 9 s of 10: %+v", s.Asked[1:])
	}
	s.Wait(1)
	if len(s.Asked) != 2 || s.Asked[1].Query.Events.Next != 6 {
		t.Errorf("asked %+v, want events after 6", s.Asked[1:])
	}
	s.Do(keymap.Refresh)
	if len(s.Asked) != 3 {
		t.Error("refresh asked for nothing")
	}
	s.Deaf = true
	s.Do(keymap.Refresh)
	s.Wait(20)
	if len(s.Asked) != 4 {
		t.Errorf("asked %d times while an answer is awaited", len(s.Asked)-4)
	}
}

// TestUpdate_AsksKubernetes: Kubernetes is queried only for a node whose daemon reports
// nothing, at most every 10 s.
func TestUpdate_AsksKubernetes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{pagetest.Down: 2, pagetest.Windows: 2, pagetest.Plain: 0, pagetest.Upstream: 0} {
		s := pagetest.Open(open(name)(), pagetest.Fleet(), 120, 37)
		for range 9 {
			s.Wait(1)
		}
		if got := uses(s); got != min(want, 1) {
			t.Errorf("%s: asked %d times within 9 s", name, got)
		}
		s.Wait(5)
		if got := uses(s); got != want {
			t.Errorf("%s: asked %d times within 14 s, want %d", name, got, want)
		}
	}
}

func uses(s *pagetest.Screen) (n int) {
	for _, read := range s.Asked {
		if read.Want&watch.WantNodeUse != 0 {
			n++
		}
	}
	return n
}

func TestUpdate_TheOriginalIsAskedGently(t *testing.T) {
	t.Parallel()
	f := pagetest.Fleet()
	f.Pace(watch.Pace{Interval: 2e9})
	s := pagetest.Open(open(pagetest.Upstream)(), f, 120, 37)
	s.Wait(30)
	if len(s.Asked) != 4 {
		t.Errorf("asked %d times in 30 s", len(s.Asked))
	}
	for _, r := range s.Asked {
		if r.Want != watch.WantENIs {
			t.Errorf("asked upstream for %b", r.Want)
		}
	}
}
