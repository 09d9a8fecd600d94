package vpcrc

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func app(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": name} }
}

func TestPod_GetsABranch(t *testing.T) {
	t.Parallel()
	l := withTrunk(t)
	group := l.policy("web")
	pod := l.pod("a", app("web"))
	text, branches := l.awaitBranches("a")
	trunk, _ := l.trunk()
	eni, there := l.world.ENI(branches[0].ENI)
	if !there || eni.Type != "branch" || eni.Description != "aws-k8s-branch-eni" || !slices.Equal(eni.SecurityGroups, []string{group}) {
		t.Fatalf("branch ENI %+v", eni)
	}
	associations := l.world.Associations(trunk.ID)
	want := fmt.Sprintf(`[{"eniId":"%s","ifAddress":"%s","privateIp":"%s","ipv6Addr":"%s","vlanId":1,"subnetCidr":"10.0.0.0/24","subnetV6Cidr":"2001:db8:1::/64","associationID":"%s"}]`,
		eni.ID, eni.MAC, eni.PrimaryIP, eni.IPv6s[0], associations[0].ID)
	if text != want {
		t.Errorf("annotation\n     %s\nwant %s", text, want)
	}
	for key, value := range map[string]string{tagVLAN: "1", tagTrunk: trunk.ID, tagInstance: l.instance.ID, tagOwner: tagOwnerValue} {
		if eni.Tags[key] != value {
			t.Errorf("tag %s is %q, want %q", key, eni.Tags[key], value)
		}
	}
	if h := l.awaitEvent("Pod", "a", "SecurityGroupRequested", 1); h != (happened{"Normal", "SecurityGroupRequested", "Pod will get the following Security Groups [" + group + "]", 1, pod.UID}) {
		t.Errorf("event %+v", h)
	}
	if h := l.awaitEvent("Pod", "a", "ResourceAllocated", 1); h.message != "Allocated "+text+" to the pod" || h.kind != "Normal" {
		t.Errorf("event %+v", h)
	}
}

func TestCapacity_CountsWhatCoolsDown(t *testing.T) {
	t.Parallel()
	l := withTrunk(t)
	for i := range 9 {
		l.pod("p" + strconv.Itoa(i))
	}
	for i := range 9 {
		l.awaitBranches("p" + strconv.Itoa(i))
	}
	_, freed := l.awaitBranches("p4")
	l.pod("late")
	// The pod retries once per cool-down, and nothing else reports that it waits.
	l.awaitEvent("Pod", "late", "SecurityGroupRequested", 2)
	for _, h := range l.events("Pod", "late") {
		if h.reason != "SecurityGroupRequested" {
			t.Errorf("event %+v", h)
		}
	}
	l.api.DeletePod(t, l.name, "p4")
	if _, b := l.awaitBranches("late"); b[0].VLAN != freed[0].VLAN {
		t.Errorf("VLAN id %d, want %d, which p4 had", b[0].VLAN, freed[0].VLAN)
	}
}
