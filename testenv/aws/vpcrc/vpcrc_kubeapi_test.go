package vpcrc

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestFeature_GivesATrunk(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	trunk := l.trunk()
	primary, _ := l.world.ENI(l.instance.PrimaryENI)
	if a := trunk.Attachment; a.Card != 0 || a.Device != 2 || !a.DeleteOnTermination {
		t.Errorf("attachment %+v", a)
	}
	want := map[string]string{tagInstance: l.instance.ID, "eks:eni:owner": "eks-vpc-resource-controller", "kubernetes.io/cluster/cluster": "owned"}
	if !maps.Equal(trunk.Tags, want) || trunk.Description != "aws-k8s-trunk-eni" {
		t.Errorf("trunk %+v", trunk)
	}
	if trunk.SubnetID != l.instance.SubnetID || !slices.Equal(trunk.SecurityGroups, primary.SecurityGroups) {
		t.Errorf("network of %+v", trunk)
	}
	h := l.awaitEvent("Node", l.name, "NodeTrunkInitiated", 1)
	if h != (happened{"Normal", "NodeTrunkInitiated", "The node has trunk interface initialized successfully", 1, types.UID(l.name)}) {
		t.Errorf("event %+v", h)
	}
}

func TestPod_GetsABranch(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	trunk := l.trunk()
	l.pod("a")
	text, branches := l.awaitBranches("a")
	eni, there := l.world.ENI(branches[0].ENI)
	if !there || eni.Type != "branch" || eni.Description != "aws-k8s-branch-eni" || !slices.Equal(eni.SecurityGroups, trunk.SecurityGroups) {
		t.Fatalf("branch ENI %+v", eni)
	}
	associations := l.world.Associations(trunk.ID)
	want := fmt.Sprintf(`[{"eniId":"%s","ifAddress":"%s","privateIp":"%s","ipv6Addr":"%s","vlanId":1,"subnetCidr":"10.0.0.0/24","subnetV6Cidr":"2001:db8:1::/64","associationID":"%s"}]`,
		eni.ID, eni.MAC, eni.PrimaryIP, eni.IPv6s[0], associations[0].ID)
	if text != want {
		t.Errorf("annotation\n     %s\nwant %s", text, want)
	}
	if eni.Tags[tagVLAN] != "1" || eni.Tags[tagTrunk] != trunk.ID || eni.Tags[tagInstance] != l.instance.ID {
		t.Errorf("tags %v", eni.Tags)
	}
	if h := l.awaitEvent("Pod", "a", "ResourceAllocated", 1); h.message != "Allocated "+text+" to the pod" || h.kind != "Normal" {
		t.Errorf("event %+v", h)
	}
}

func TestCapacity_CountsWhatCoolsDown(t *testing.T) {
	t.Parallel()
	l := newLab(t)
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
