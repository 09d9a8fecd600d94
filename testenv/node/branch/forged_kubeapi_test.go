package branch_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/testenv/aws/vpcrc"
	"cnictl/testenv/node"
)

var podObjects = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// annotation returns a pod's announcement of a branch ENI.
func (m *member) annotation(name string) string {
	m.l.t.Helper()
	o, err := m.l.api.Objects().Resource(podObjects).Namespace(m.l.namespace).Get(m.l.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		m.l.t.Fatal(err)
	}
	return o.GetAnnotations()[podENI]
}

// announce writes an announcement, as anyone may while the controller's webhook does not answer.
func (m *member) announce(name, value string) {
	m.l.t.Helper()
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{podENI: value}}})
	if err == nil {
		_, err = m.l.api.Objects().Resource(podObjects).Namespace(m.l.namespace).
			Patch(m.l.t.Context(), name, types.MergePatchType, change, metav1.PatchOptions{})
	}
	if err != nil {
		m.l.t.Fatal(err)
	}
}

// TestBranch_Forged: a pod whose annotation names the branch ENI of another pod, or only its VLAN
// ID, gets no network, and neither its ADD and DEL nor a repair take anything from the other pod.
func TestBranch_Forged(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	m, other := l.join(strict, vpcrc.Faults{}), l.host()
	victim := m.run("victim")
	paths := []pair{{"victim", victim, other.Primary.PrimaryIP}, {"to victim", other, victim.IP}}
	l.reaches("before", paths...)
	device := m.ip("link", "show", victim.device())
	unharmed := func(when string) {
		t.Helper()
		l.reaches(when, paths...)
		if now := m.ip("link", "show", victim.device()); now != device {
			t.Errorf("%s: the device is\n%swas\n%s", when, now, device)
		}
		if links := m.ip("-o", "link", "show", "type", "vlan"); strings.Count(links, "\n") != 1 {
			t.Errorf("%s: VLAN devices are\n%s", when, links)
		}
	}
	own := m.annotation("victim")
	attack := func(when, name, annotation string) {
		t.Helper()
		forged := &branchPod{m: m, bound: l.api.CreatePod(t, l.namespace, name, m.name, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{podENI: resource.MustParse("1")}
			p.Annotations = map[string]string{podENI: annotation}
		})}
		err := m.runBound(forged) // a failed ADD is followed by the DEL of its sandbox
		var failure *node.PluginError
		if !errors.As(err, &failure) || !strings.Contains(failure.Details, "branch-conflict") || !strings.Contains(failure.Details, "/victim") {
			t.Fatalf("%s: %v", when, err)
		}
		unharmed(when)
		forged.forget()
	}
	attack("all of it", "all", own)
	attack("the VLAN ID", "vlan", strings.NewReplacer(victim.MAC, "06:00:00:00:00:77", victim.IPv4, "10.1.0.77", `"eniId":"eni-`, `"eniId":"eni-9`).Replace(own))
	attack("the MAC in capitals", "mac", strings.NewReplacer(victim.MAC, strings.ToUpper(victim.MAC), `"vlanId":1`, `"vlanId":99`).Replace(own))
	m.restart(strict)
	attack("after a restart", "restart", own)
	m.end(victim)
	m.nothingLeft()
}

// TestBranch_ForgedWhileRunning: a running pod names the branch ENI of another pod. Its state is not
// repaired to that, and it can name its own again.
func TestBranch_ForgedWhileRunning(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	m, other := l.join(strict, vpcrc.Faults{}), l.host()
	victim, forged := m.run("victim"), m.run("forged")
	own := m.annotation("forged")
	state := func() string {
		return m.ip("rule") + m.ip("route", "show", "table", victim.table()) + m.ip("route", "show", "table", forged.table()) + m.ip("-br", "link", "show", "type", "vlan")
	}
	m.looked()
	want := state()
	m.announce("forged", m.annotation("victim"))
	m.restart(strict) // repairs at once what it takes for lost
	m.looked()
	m.looked()
	if now := state(); now != want {
		t.Errorf("changed to\n%swas\n%s", now, want)
	}
	l.reaches("with two such pods", pair{"victim", victim, other.Primary.PrimaryIP}, pair{"to victim", other, victim.IP}, pair{"forged", forged, other.Primary.PrimaryIP})

	m.announce("forged", own)
	again := *forged
	if err := m.runBound(&again); err != nil {
		t.Fatal(err)
	}
	m.endSandbox(forged.Pod)
	l.reaches("with its own again", pair{"forged", again, other.Primary.PrimaryIP}, pair{"to forged", other, again.IP})
	m.end(victim, &again)
	m.nothingLeft()
}
