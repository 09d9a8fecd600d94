package e2e_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// cordoned makes a Node unschedulable, as kubectl cordon and the node controller do.
func cordoned(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
}

// plan returns what the member's daemon would do now, without waits.
func (m *member) plan() (actions []introspect.PlannedAction) {
	m.c.t.Helper()
	var plan introspect.NodePlan
	m.c.get(m.Node, introspect.PathPlan, &plan)
	return slices.DeleteFunc(plan.Actions, func(a introspect.PlannedAction) bool { return a.Kind == introspect.ActionWait })
}

// TestModes_Unschedulable: a cordoned node serves the pods that are bound to it and does
// nothing else; upstream does not even serve those.
func TestModes_Unschedulable(t *testing.T) {
	t.Parallel()
	t.Run("from the start", testCordonedStart)
	t.Run("and back", testCordonedAndBack)
	t.Run("managed all the same", testCordonedManaged)
}

var warmIPs = map[string]string{"WARM_IP_TARGET": "3", "IP_COOLDOWN_PERIOD": "0", "CNI_ADD_WAIT": "5s"}

func testCordonedStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "t3.small"}, cordoned)
	m.start(warmIPs)
	testenv.Eventually(c.t, "the daemon knows", func() bool { return m.isCordoned() })
	if actions := m.plan(); len(actions) > 0 || len(withoutTags(c.changed())) > 0 {
		t.Errorf("a cordoned node plans %+v and did %v", actions, c.changed())
	}
	pod := m.bind("bound") // a DaemonSet's
	testenv.Eventually(c.t, "an address for the pod that is bound", func() bool { return len(m.enis()[0].SecondaryIPs) > 0 })
	if r := m.add(pod); !r.Success {
		t.Errorf("%+v", r)
	}
	m.run("another", 1)
	if n := len(m.enis()[0].SecondaryIPs); n != 2 || len(m.plan()) > 0 {
		t.Errorf("%d addresses for two pods, plan %+v", n, m.plan())
	}
}

func testCordonedAndBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	m.start(warmIPs)
	pods := m.run("p", 4)
	c.settled(m.Node)
	m.cordon(true)
	testenv.Eventually(c.t, "the daemon knows", func() bool { return m.isCordoned() })
	before := c.changed()
	m.remove(pods...)
	if actions := m.plan(); len(actions) > 0 {
		t.Errorf("a cordoned node is about to %+v", actions)
	}
	if did := c.changed()[len(before):]; len(did) > 0 {
		t.Errorf("a cordoned node did %v", did)
	}
	m.cordon(false)
	testenv.Eventually(c.t, "what is too much given back", func() bool { return len(m.enis()[0].SecondaryIPs) == 3 })
	c.nothingLeft(m.Node)
}

func testCordonedManaged(t *testing.T) {
	t.Parallel()
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"}, cordoned)
	m.start(with(warmIPs, "AWS_MANAGE_ENIS_NON_SCHEDULABLE=true"))
	testenv.Eventually(c.t, "the reserve", func() bool { return len(m.enis()[0].SecondaryIPs) == 3 })
	pods := m.run("p", 3)
	testenv.Eventually(c.t, "the reserve filled up", func() bool { return len(m.enis()[0].SecondaryIPs) == 6 })
	m.remove(pods...)
	testenv.Eventually(c.t, "what is too much given back", func() bool { return len(m.enis()[0].SecondaryIPs) < 6 })
}

// isCordoned reports whether the daemon knows that the node is cordoned.
func (m *member) isCordoned() bool {
	m.c.t.Helper()
	s := m.summary()
	return s.Cordoned != nil && *s.Cordoned
}
