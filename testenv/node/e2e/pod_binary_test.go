package e2e_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
)

// TestPods_ReachEachOther adds pods on two nodes, on one of them until two ENIs are in use, and
// pings along every path.
func TestPods_ReachEachOther(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	a, b := l.boot("m5.large", nil), l.boot("m5.large", nil)
	onA, onB := l.mustAdd(a, "a", 11, 4), l.mustAdd(b, "b", 3, 1)
	first, last := onA[0], onA[len(onA)-1]
	enis := map[string]bool{}
	for _, p := range onA {
		owner, ok := l.world.OwnerOf(p.IP)
		if !ok {
			t.Fatalf("%s has %s, which EC2 has not assigned", p.Name, p.IP)
		}
		enis[owner.ID] = true
	}
	if len(enis) != 2 {
		t.Fatalf("11 pods of an m5.large are on ENIs %v, want two", enis)
	}
	for _, path := range []struct {
		name string
		ping error
	}{
		{"node to pod", a.Ping(first.IP, testenv.Left(t))},
		{"node to pod on another ENI", a.Ping(last.IP, testenv.Left(t))},
		{"pod to pod, across ENIs of one node", a.PingFrom(first, last.IP, testenv.Left(t))},
		{"pod to pod, across nodes", a.PingFrom(last, onB[0].IP, testenv.Left(t))},
		{"pod to pod, back", b.PingFrom(onB[0], first.IP, testenv.Left(t))},
		{"pod to outside", a.PingFrom(last, vpc.Outside.Addr(), testenv.Left(t))},
	} {
		if path.ping != nil {
			t.Errorf("%s: %v", path.name, path.ping)
		}
	}
	l.del(a, onA, 4)
	l.del(b, onB, 1)
	l.nothingLeft(a)
	l.nothingLeft(b)
	if err := a.Ping(first.IP, 250*time.Millisecond); err == nil { //realtime: nothing answers
		t.Error("a deleted pod still answers")
	}
}

// TestIntrospection_EqualsTheWorld compares what the daemon shows with EC2.
func TestIntrospection_EqualsTheWorld(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]map[string]string{
		"secondary": nil,
		"prefix":    {"ENABLE_PREFIX_DELEGATION": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, fakeaws.Options{})
			n := l.boot("m5.large", env)
			pods := l.mustAdd(n, "p", 20, 8)
			l.settled(n)
			var shown introspect.ENIs
			l.get(n, introspect.PathENIs, &shown)
			want := l.world.ENIsOf(n.InstanceID)
			if len(shown["0"].ENIs) != len(want) {
				t.Errorf("shows %d ENIs, EC2 has %d", len(shown["0"].ENIs), len(want))
			}
			for _, e := range want {
				cidrs := map[string]bool{}
				for _, a := range e.SecondaryIPs {
					cidrs[a.String()+"/32"] = true
				}
				for _, p := range e.Prefixes {
					cidrs[p.String()] = true
				}
				got := shown["0"].ENIs[e.ID].AvailableIPv4Cidrs
				for c := range cidrs {
					if _, ok := got[c]; !ok {
						t.Errorf("ENI %s: EC2 has %s, the daemon does not show it", e.ID, c)
					}
				}
				if len(got) != len(cidrs) {
					t.Errorf("ENI %s: shows %d CIDRs, EC2 has %d", e.ID, len(got), len(cidrs))
				}
			}
			if shown["0"].AssignedIPs != len(pods) {
				t.Errorf("shows %d assigned, %d pods run", shown["0"].AssignedIPs, len(pods))
			}
			l.del(n, pods, 8)
			l.nothingLeft(n)
		})
	}
}

// settled waits until no EC2 operation is in progress or planned.
func (l *lab) settled(n *node.Node) {
	l.t.Helper()
	quiet := 0
	testenv.Eventually(l.t, "a quiet pool", func() bool {
		var s introspect.Summary
		l.get(n, introspect.PathSummary, &s)
		if len(s.Operations) == 0 && s.WaitingADDs != nil && *s.WaitingADDs == 0 {
			quiet++
		} else {
			quiet = 0
		}
		return quiet == 3
	})
}

// TestADD_FullNode: on a full node an ADD fails at once, with upstream's message and the
// cause.
func TestADD_FullNode(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("t3.small", map[string]string{"MAX_ENI": "1", "CNI_ADD_WAIT": "60s"})
	pods := l.mustAdd(n, "p", 3, 1)
	var err error
	testenv.Within(t, 45*time.Second, "a hopeless ADD, while one with hope waits for 60 s", func() {
		_, err = n.AddPod(node.PodSpec{Namespace: "default", Name: "one-too-many"})
	})
	var failure *node.PluginError
	if !errors.As(err, &failure) {
		t.Fatalf("fourth pod of three: %v, want a plugin error", err)
	}
	if failure.Msg != "add cmd: failed to assign an IP address to container" || failure.Code != 999 {
		t.Errorf("code %d, msg %q", failure.Code, failure.Msg)
	}
	if !strings.Contains(failure.Details, "pool-full") {
		t.Errorf("details %q name no cause pool-full", failure.Details)
	}
	l.del(n, pods, 1)
}
