package e2e_test

import (
	"syscall"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// TestRestart_DeletesOrphans leaves ENIs behind like a daemon that dies between create and attach:
// the next daemon deletes its own and no others.
func TestRestart_DeletesOrphans(t *testing.T) {
	t.Parallel()
	const instance, noManage = "node.k8s.amazonaws.com/instance_id", "node.k8s.amazonaws.com/no_manage"
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	pods := l.mustAdd(n, "p", 2, 1)
	l.settled(n)
	l.kill(n, syscall.SIGKILL)
	leave := func(description string, tags map[string]string) string {
		e, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: l.subnet.ID, Description: description, IPs: 2, Tags: tags})
		if err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	ours := leave("aws-K8S-"+n.InstanceID, map[string]string{instance: n.InstanceID})
	kept := map[string]string{
		"another instance's":       leave("aws-K8S-i-0fedcba9876543210", map[string]string{instance: "i-0fedcba9876543210"}),
		"one marked no_manage":     leave("aws-K8S-"+n.InstanceID, map[string]string{instance: n.InstanceID, noManage: "true"}),
		"one another program made": leave("made by hand", map[string]string{instance: n.InstanceID}),
	}
	l.start(n, nil)
	testenv.Eventually(l.t, "the orphan is deleted", func() bool { _, there := l.world.ENI(ours); return !there })
	l.settled(n)
	for what, id := range kept {
		if _, there := l.world.ENI(id); !there {
			t.Errorf("%s was deleted", what)
		}
	}
	l.del(n, pods, 1)
	l.nothingLeft(n)
}

// TestRestart_KeepsOrphansIfSet: with DISABLE_LEAKED_ENI_CLEANUP the daemon keeps them.
func TestRestart_KeepsOrphansIfSet(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	l.mustAdd(n, "p", 1, 1)
	l.settled(n)
	l.kill(n, syscall.SIGKILL)
	e, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: l.subnet.ID, Description: "aws-K8S-" + n.InstanceID,
		Tags: map[string]string{"node.k8s.amazonaws.com/instance_id": n.InstanceID}})
	if err != nil {
		t.Fatal(err)
	}
	l.start(n, map[string]string{"DISABLE_LEAKED_ENI_CLEANUP": "true"})
	l.settled(n)
	if _, there := l.world.ENI(e.ID); !there {
		t.Error("the orphan was deleted although the clean-up is off")
	}
}
