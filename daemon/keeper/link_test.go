package keeper

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
)

// TestAdd_LinkTaken: a pod whose name was chosen to get the host link of another pod is refused
// as long as that pod has an address; a newer sandbox of the pod is not.
func TestAdd_LinkTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(5)
	add := func(container, namespace, name string) *asked {
		a := b.add(name, time.Minute)
		a.Request.PodNamespace, a.Request.ContainerID = namespace, container
		b.send(a.Add)
		if a.reply == nil {
			b.write(nil)
		}
		return a
	}
	refused := func(when string, a *asked, other string) {
		t.Helper()
		if r := a.got(t); r.Success || r.Cause != string(cause.LinkConflict) || r.Transient || !strings.Contains(r.Detail, other) {
			t.Errorf("%s: %+v", when, r)
		}
		last := b.events[len(b.events)-1]
		if failed, ok := last.(AddFailed); !ok || failed.Cause != cause.LinkConflict || !strings.Contains(failed.Detail, other) {
			t.Errorf("%s: the last event is %+v", when, last)
		}
	}
	given := func(when string, a *asked) {
		t.Helper()
		if r := a.got(t); !r.Success {
			t.Errorf("%s: %+v", when, r)
		}
	}
	attack := func(when string) {
		t.Helper()
		refused(when, add("attacker", testenv.AttackerNamespace, testenv.AttackerName), testenv.VictimNamespace+"/"+testenv.VictimName)
	}
	given("the victim", add("victim", testenv.VictimNamespace, testenv.VictimName))
	attack("the attacker")
	given("another pod", add("other", testenv.AttackerNamespace, testenv.AttackerName+"1"))
	given("a newer sandbox of the victim", add("victim-2", testenv.VictimNamespace, testenv.VictimName))
	del := del("victim")
	del.Request.PodNamespace, del.Request.PodName = testenv.VictimNamespace, testenv.VictimName
	b.send(del.Del)
	b.write(nil)
	attack("after the late DEL of the older sandbox")

	del.Request.ContainerID, del.reply = "victim-2", nil
	b.send(del.Del)
	b.write(nil)
	given("after the victim's end", add("attacker", testenv.AttackerNamespace, testenv.AttackerName))
	refused("the victim, as long as the other pod has the link", add("victim-3", testenv.VictimNamespace, testenv.VictimName),
		testenv.AttackerNamespace+"/"+testenv.AttackerName)
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

// TestAdd_LinkTakenAfterRestart: the checkpoint names the pods of the links.
func TestAdd_LinkTakenAfterRestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(5)
	_, err := b.Restore(b.clock, Start{
		Entries: []checkpoint.Entry{{
			NetworkName: "aws-cni", ContainerID: "victim", IfName: "eth0", IPv4: netip.MustParseAddr("10.0.1.1"), AllocatedAt: b.clock,
			PodNamespace: testenv.VictimNamespace, PodName: testenv.VictimName,
		}},
		Links: []string{netnames.HostVeth("eni", testenv.VictimNamespace, testenv.VictimName, 0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	a := b.add(testenv.AttackerName, time.Minute)
	a.Request.PodNamespace = testenv.AttackerNamespace
	b.send(a.Add)
	if r := a.got(t); r.Success || r.Cause != string(cause.LinkConflict) {
		t.Errorf("%+v", r)
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

// TestAdd_LinkTakenWhileWaiting: two such pods wait for an address. The first one to get one has
// the link.
func TestAdd_LinkTakenWhileWaiting(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.add(testenv.VictimName, time.Minute), b.add(testenv.AttackerName, time.Minute)
	first.Request.PodNamespace, second.Request.PodNamespace = testenv.VictimNamespace, testenv.AttackerNamespace
	b.send(first.Add)
	b.send(second.Add)
	first.unanswered(t, "the first")
	second.unanswered(t, "the second")
	b.give(5)
	b.step()
	if r := second.got(t); r.Success || r.Cause != string(cause.LinkConflict) {
		t.Errorf("the second: %+v", r)
	}
	b.write(nil)
	if r := first.got(t); !r.Success {
		t.Errorf("the first: %+v", r)
	}
}

// TestAdd_LinkTakenByInterface: the link of a pod's second interface is named as the only link of
// the pod "name.1".
func TestAdd_LinkTakenByInterface(t *testing.T) {
	t.Parallel()
	if netnames.Hash("shop", "db", 1) != netnames.Hash("shop", "db.1", 0) {
		t.Fatal("the names differ")
	}
	for _, several := range []bool{true, false} {
		b := cardsBench(t, 2)
		b.fill(0, 0, 5)
		b.fill(1, 0, 5)
		first, second := b.addAll("db", time.Minute), b.add("db.1", time.Minute)
		if !several {
			first, second = second, first
		}
		b.send(first.Add)
		b.write(nil)
		b.send(second.Add)
		if r := first.got(t); !r.Success {
			t.Errorf("the first: %+v", r)
		}
		if r := second.got(t); r.Success || r.Cause != string(cause.LinkConflict) {
			t.Errorf("the second: %+v", r)
		}
		if err := b.Check(); err != nil {
			t.Error(err)
		}
	}
}
