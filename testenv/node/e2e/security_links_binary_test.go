package e2e_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// TestLinks_ChosenName: a pod whose name was chosen so that its host link has the name of another
// pod's gets no network, before and after a restart, and does not cut off that pod.
func TestLinks_ChosenName(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	spec := node.PodSpec{Namespace: testenv.VictimNamespace, Name: testenv.VictimName}
	victim, err := n.AddPod(spec)
	if err != nil {
		t.Fatal(err)
	}
	works := func(when string, victim *node.Pod) {
		t.Helper()
		if err := n.Ping(victim.IP, testenv.Left(t)); err != nil {
			t.Fatalf("%s: the other pod is cut off: %v", when, err)
		}
		if err := victim.Ping(n.Primary.PrimaryIP, testenv.Left(t)); err != nil {
			t.Fatalf("%s: the other pod is cut off: %v", when, err)
		}
	}
	attack := func(when string, victim *node.Pod) {
		t.Helper()
		// A failed ADD is followed by the DEL of its sandbox.
		p, err := n.AddPod(node.PodSpec{Namespace: testenv.AttackerNamespace, Name: testenv.AttackerName})
		var failure *node.PluginError
		switch {
		case !errors.As(err, &failure):
			t.Errorf("%s: %v, want a plugin error; the pod is %+v", when, err, p)
		case !strings.Contains(failure.Details, "link-conflict") || !strings.Contains(failure.Details, testenv.VictimNamespace+"/"+testenv.VictimName):
			t.Errorf("%s: details %q name no cause link-conflict, or not the other pod", when, failure.Details)
		}
		works(when, victim)
	}
	attack("while it runs", victim)
	l.kill(n, syscall.SIGKILL)
	l.start(n, nil)
	attack("after a restart", victim)

	again, err := n.AddPod(spec) // the runtime makes a new sandbox first
	if err != nil {
		t.Fatal(err)
	}
	l.del(n, []*node.Pod{victim}, 1)
	attack("after the late DEL of its first sandbox", again)
	l.del(n, []*node.Pod{again}, 1)
	p, err := n.AddPod(node.PodSpec{Namespace: testenv.AttackerNamespace, Name: testenv.AttackerName})
	if err != nil {
		t.Fatalf("after the other pod's end: %v", err)
	}
	l.del(n, []*node.Pod{p}, 1)
	l.nothingLeft(n)
}
