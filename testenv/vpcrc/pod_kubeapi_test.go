package vpcrc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"cnictl/testenv/fakeaws"
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

func TestPod_WithoutAPolicyGetsTheNodesGroups(t *testing.T) {
	t.Parallel()
	l := withTrunk(t)
	l.pod("a")
	_, branches := l.awaitBranches("a")
	eni, _ := l.world.ENI(branches[0].ENI)
	primary, _ := l.world.ENI(l.instance.PrimaryENI)
	if !slices.Equal(eni.SecurityGroups, primary.SecurityGroups) {
		t.Errorf("groups %q", eni.SecurityGroups)
	}
	h := l.awaitEvent("Pod", "a", "SecurityGroupRequested", 1)
	if h.kind != "Warning" || h.message != "Pod will get the instance security group as the pod didn't match any Security Group from SecurityGroupPolicy" {
		t.Errorf("event %+v", h)
	}
}

func TestPod_BoundBeforeTheNodeIsManaged(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.pod("a")
	l.want(feature{Name: featurePodGroups})
	l.awaitBranches("a")
}

func TestPod_MayWantSeveral(t *testing.T) {
	t.Parallel()
	l := withTrunk(t)
	l.pod("a", func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "x",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{podENIKey: resource.MustParse("2")}}})
	})
	if _, b := l.awaitBranches("a"); len(b) != 3 || b[0].VLAN != 1 || b[2].VLAN != 3 {
		t.Errorf("branches %+v", b)
	}
}

func TestPod_OfAnotherKindIsLeftAlone(t *testing.T) {
	t.Parallel()
	l := withTrunk(t)
	l.api.CreatePod(t, l.name, "plain", l.name)
	l.pod("a")
	l.awaitBranches("a")
	if got := l.annotationOf("plain"); got != "" {
		t.Errorf("annotation %s", got)
	}
}

func TestPodEnd_FreesAfterTheCooldown(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*lab, *corev1.Pod){
		"deleted":   func(l *lab, p *corev1.Pod) { l.api.DeletePod(l.t, l.name, p.Name) },
		"succeeded": func(l *lab, p *corev1.Pod) { l.setPhase(p, corev1.PodSucceeded) },
		"failed":    func(l *lab, p *corev1.Pod) { l.setPhase(p, corev1.PodFailed) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := withTrunk(t)
			pod := l.pod("a")
			_, branches := l.awaitBranches("a")
			l.pod("b")
			l.awaitBranches("b")
			// On a busy machine the cool-down may be over before the state is checked.
			start := time.Now()
			cooling := func() bool { return time.Since(start) < time.Duration(float64(defaultCooldown)*scale) } //realtime: see above
			end(l, pod)
			if s := l.awaitState("released", func(s NodeState) bool { return s.Used == 1 }); s.Cooling != 1 && cooling() {
				t.Errorf("it has %+v", s)
			}
			l.pod("c")
			if _, b := l.awaitBranches("c"); b[0].VLAN != 3 && cooling() {
				t.Errorf("VLAN id %d while 1 and 2 are taken", b[0].VLAN)
			}
			l.awaitState("freed", func(s NodeState) bool { return s.Cooling == 0 && len(s.VLANs) == 2 })
			if _, there := l.world.ENI(branches[0].ENI); there {
				t.Error("the branch ENI is still there")
			}
			l.pod("d")
			l.awaitBranches("d")
			l.awaitState("the lowest ids", func(s NodeState) bool { return slices.Equal(s.VLANs, []int{1, 2, 3}) })
		})
	}
}

func (l *lab) setPhase(p *corev1.Pod, phase corev1.PodPhase) {
	l.t.Helper()
	l.api.SetPodStatus(l.t, p, func(s *corev1.PodStatus) { s.Phase = phase })
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

func TestRestart_KeepsWhatIsAnnotated(t *testing.T) {
	t.Parallel()
	l := withTrunk(t)
	l.pod("a")
	l.pod("b")
	_, a := l.awaitBranches("a")
	_, b := l.awaitBranches("b")
	orphan := l.orphan(7)
	if err := l.rc.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.awaitState("rebuilt", func(s NodeState) bool { return s.Used == 2 })
	l.pod("c")
	if _, c := l.awaitBranches("c"); c[0].VLAN != 3 {
		t.Errorf("VLAN id %d beside %d and %d", c[0].VLAN, a[0].VLAN, b[0].VLAN)
	}
	l.awaitState("orphan deleted", func(s NodeState) bool { return s.Cooling == 0 && slices.Equal(s.VLANs, []int{1, 2, 3}) })
	if _, there := l.world.ENI(orphan); there {
		t.Error("the orphan is still there")
	}
	if h := l.awaitEvent("Node", l.name, "NodeTrunkInitiated", 2); h.count != 2 {
		t.Errorf("event %+v", h)
	}
}

// orphan creates a branch that belongs to no pod.
func (l *lab) orphan(vlan int) string {
	l.t.Helper()
	trunk, _ := l.trunk()
	e, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: l.instance.SubnetID, Tags: l.rc.opts.branchTags(l.instance.ID, trunk.ID, strconv.Itoa(vlan))})
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.world.AssociateBranch(fakeaws.AssociateSpec{Trunk: trunk.ID, Branch: e.ID, VLAN: vlan}); err != nil {
		l.t.Fatal(err)
	}
	return e.ID
}

func TestPod_OfADeletedUIDIsNotAnnotated(t *testing.T) {
	t.Parallel()
	l := withTrunk(t, faulty(Faults{AnnotationDelay: 300 * time.Second}))
	l.pod("a")
	l.awaitState("branch made", func(s NodeState) bool { return s.Used == 1 })
	l.api.DeletePod(t, l.name, "a")
	l.rc.SetFaults(Faults{})
	second := l.pod("a")
	h := l.awaitEvent("Pod", "a", "BranchENIAnnotationFailed", 1)
	if want := "not annotating the Pod with UID " + string(second.UID) + " as the annotation was intended for Pod with UID "; !strings.Contains(h.message, want) {
		t.Errorf("event %+v", h)
	}
	l.awaitBranches("a")
}
