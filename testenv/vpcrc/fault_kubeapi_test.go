package vpcrc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/testenv"
	"cnictl/testenv/fakeaws"
	"cnictl/testenv/kubeapi"
)

func TestFault_NoCNINode(t *testing.T) {
	t.Parallel()
	l := newLab(t, faulty(Faults{NoCNINode: true}))
	// The label makes the node managed, so it counts as processed once the trunk exists.
	l.patch(nodesResource, "", l.name, map[string]any{"metadata": map[string]any{"labels": map[string]any{trunkLabel: "false"}}})
	l.awaitTrunk()
	if c := l.cninode(); c != nil {
		t.Errorf("CNINode %+v", c)
	}
	l.rc.SetFaults(Faults{})
	l.touch()
	l.awaitCNINode()
}

func TestFault_CNINodeDeletedUnderALiveNode(t *testing.T) {
	t.Parallel()
	l := withTrunk(t)
	old := l.cninode()
	l.deleteCNINode()
	testenv.EventuallyErr(l.t, "made again", func() error {
		c := l.cninode()
		if c == nil || c.UID == old.UID || len(c.Spec.Features) != 1 || c.Spec.Features[0].Name != featurePodGroups || metav1.GetControllerOf(c) == nil {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	l.pod("a")
	l.awaitBranches("a")
}

func TestFault_CNINodeNotRecreated(t *testing.T) {
	t.Parallel()
	l := withTrunk(t, faulty(Faults{CNINodeNotRecreated: true}))
	l.deleteCNINode()
	h := l.awaitEvent("Node", l.name, "CNINodeCreationFailed", 1)
	if h.message != "CNINode was deleted and failed to be recreated by the vpc-resource-controller" || h.kind != "Warning" || l.cninode() != nil {
		t.Errorf("event %+v", h)
	}
}

func (l *lab) deleteCNINode() {
	l.t.Helper()
	if err := l.rcAPI().of(cninodesResource, "").Delete(l.t.Context(), l.name, metav1.DeleteOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

func TestFault_UnsupportedType(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, instanceType, message string }{
		{"by the switch", "m5.large", "The instance type m5.large is not supported yet by the vpc resource controller"},
		{"not in the table", "c5a.metal", "The instance type c5a.metal is not supported yet by the vpc resource controller"},
		{"not compatible", "t3.medium", "The instance type t3.medium is not supported for trunk interface (Security Group for Pods)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			l := newLabOn(t, kubeapi.Shared(t), row.instanceType, faulty(Faults{UnsupportedType: row.instanceType == "m5.large"}))
			l.want(feature{Name: featurePodGroups})
			h := l.awaitEvent("Node", l.name, "Unsupported", 1)
			if h.kind != "Warning" || h.message != row.message {
				t.Errorf("event %+v", h)
			}
			l.touch()
			l.awaitEvent("Node", l.name, "Unsupported", h.count+1)
			if _, there := l.trunk(); there || l.capacity() != "" {
				t.Error("there is a trunk")
			}
		})
	}
}

func TestFault_NoDeviceIndex(t *testing.T) {
	t.Parallel()
	fill := func(l *lab) {
		for device := 1; device <= 2; device++ {
			e, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: l.instance.SubnetID})
			if err == nil {
				_, err = l.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: l.instance.ID, Device: device})
			}
			if err != nil {
				l.t.Fatal(err)
			}
		}
	}
	for name, cause := range map[string]func(*lab){
		"by the switch": func(l *lab) { l.rc.SetFaults(Faults{NoDeviceIndex: true}) },
		"full":          fill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			cause(l)
			l.want(feature{Name: featurePodGroups})
			h := l.awaitEvent("Node", l.name, "NodeTrunkFailedInit", 2) // for both attempts
			if h.kind != "Normal" || h.message != "The node failed initializing trunk interface" {
				t.Errorf("event %+v", h)
			}
			l.wantNoEvent("Node", l.name, "TrunkENICreationFailed")
		})
	}
}

func TestFault_TrunkUnauthorized(t *testing.T) {
	t.Parallel()
	l := newLab(t, faulty(Faults{TrunkUnauthorized: true}))
	l.want(feature{Name: featurePodGroups})
	h := l.awaitEvent("Node", l.name, "TrunkENICreationFailed", 1)
	node := read[corev1.Node](l, nodesResource, "", l.name)
	if h.message != trunkFailure(unauthorized) || h.kind != "Warning" || h.uid != node.UID {
		t.Errorf("event %+v", h)
	}
	if h := l.awaitEvent("Node", l.name, "NodeTrunkFailedInit", 2); h.uid != types.UID(l.name) {
		t.Errorf("event %+v", h)
	}
	if l.capacity() != "" {
		t.Error("capacity without a trunk")
	}
	l.rc.SetFaults(Faults{})
	l.touch()
	l.awaitTrunk()
}

func TestFault_SubnetFull(t *testing.T) {
	t.Parallel()
	occupy := func(l *lab) {
		if _, err := l.world.Occupy(l.instance.SubnetID, 1000); err != nil {
			l.t.Fatal(err)
		}
	}
	vacate := func(l *lab) {
		if err := l.world.Vacate(l.instance.SubnetID); err != nil {
			l.t.Fatal(err)
		}
	}
	for name, row := range map[string]struct{ begin, end func(*lab) }{
		"by the switch": {func(l *lab) { l.rc.SetFaults(Faults{SubnetFull: true}) }, func(l *lab) { l.rc.SetFaults(Faults{}) }},
		"full":          {occupy, vacate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := withTrunk(t)
			row.begin(l)
			l.pod("a")
			h := l.awaitEvent("Pod", "a", "BranchAllocationFailed", 6)
			if want := "failed to allocate branch ENI to pod: creating network interface, InsufficientFreeAddressesInSubnet: "; !strings.HasPrefix(h.message, want) || h.kind != "Warning" {
				t.Errorf("event %+v", h)
			}
			row.end(l)
			// There is no seventh attempt: pod b is served, pod a gets no branch.
			l.pod("b")
			l.awaitBranches("b")
			if got := l.annotationOf("a"); got != "" {
				t.Errorf("annotation %s", got)
			}
			if h := l.awaitEvent("Pod", "a", "BranchAllocationFailed", 6); h.count != 6 {
				t.Errorf("%d tries", h.count)
			}
			// Pod a gets its branch only once the pod changes.
			l.patch(podsResource, l.name, "a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"x": "y"}}})
			l.awaitBranches("a")
		})
	}
}

func TestFault_AtCapacity(t *testing.T) {
	t.Parallel()
	l := withTrunk(t, faulty(Faults{AtCapacity: true}))
	l.pod("a")
	l.awaitEvent("Pod", "a", "SecurityGroupRequested", 2)
	if all := l.events("Pod", "a"); len(all) != 1 {
		t.Errorf("events %+v", all)
	}
	l.rc.SetFaults(Faults{})
	l.awaitBranches("a")
}

func TestFault_AnnotationDelayed(t *testing.T) {
	t.Parallel()
	const delay = 60 * time.Second
	l := withTrunk(t, faulty(Faults{AnnotationDelay: delay}))
	took := testenv.Took(func() {
		l.pod("a")
		l.awaitBranches("a")
	})
	if took < time.Duration(float64(delay)*scale) {
		t.Errorf("it took %s", took)
	}
}

func TestFault_AnnotationDenied(t *testing.T) {
	t.Parallel()
	l := withTrunk(t, faulty(Faults{AnnotationDenied: true}))
	l.pod("a")
	h := l.awaitEvent("Pod", "a", "BranchENIAnnotationFailed", 6)
	if !strings.HasPrefix(h.message, "failed to annotate pod with branch ENI details: pods \"a\" is forbidden: ") || h.kind != "Warning" {
		t.Errorf("event %+v", h)
	}
	l.awaitState("branches deleted", func(s NodeState) bool { return s.Used == 0 && s.Cooling == 0 && len(s.VLANs) == 0 })
	if got := l.annotationOf("a"); got != "" {
		t.Errorf("annotation %s", got)
	}
}

func TestFault_Annotation(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		faults Faults
		check  func(entries []map[string]any) bool
	}{
		{"two entries", Faults{AnnotationTwice: true}, func(e []map[string]any) bool { return len(e) == 2 && e[0]["vlanId"] == 1.0 && e[1]["vlanId"] == 2.0 }},
		{"vlanID", Faults{AnnotationVLANID: true}, func(e []map[string]any) bool { return len(e) == 1 && e[0]["vlanID"] == 1.0 && e[0]["vlanId"] == nil }},
		{"without IPv6", Faults{AnnotationNoIPv6: true}, func(e []map[string]any) bool { return len(e) == 1 && len(e[0]) == 5 }},
		{"other CIDR", Faults{AnnotationCIDR: true}, func(e []map[string]any) bool { return len(e) == 1 && e[0]["subnetCidr"] == wrongCIDR }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			l := withTrunk(t, faulty(row.faults))
			l.pod("a")
			var entries []map[string]any
			testenv.EventuallyErr(l.t, "annotation", func() error { return json.Unmarshal([]byte(l.annotationOf("a")), &entries) })
			if !row.check(entries) {
				t.Errorf("annotation %v", entries)
			}
		})
	}
}

func TestFault_ReuseVLANs(t *testing.T) {
	t.Parallel()
	l := withTrunk(t, faulty(Faults{ReuseVLANs: true}))
	l.pod("a")
	_, first := l.awaitBranches("a")
	l.api.DeletePod(t, l.name, "a")
	l.awaitState("freed at once", func(s NodeState) bool { return s.Used == 0 && s.Cooling == 0 && len(s.VLANs) == 0 })
	l.pod("b")
	if _, second := l.awaitBranches("b"); second[0].VLAN != first[0].VLAN || second[0].MAC == first[0].MAC {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

func TestFault_DeleteFails(t *testing.T) {
	t.Parallel()
	l := withTrunk(t, faulty(Faults{DeleteFails: true}))
	l.pod("a")
	l.awaitBranches("a")
	l.api.DeletePod(t, l.name, "a")
	l.awaitState("forgotten", func(s NodeState) bool { return s.Used == 0 && s.Cooling == 0 && slices.Equal(s.VLANs, []int{1}) })
}

func TestFault_RestartLosesAVLAN(t *testing.T) {
	t.Parallel()
	for _, collide := range []bool{true, false} {
		t.Run(fmt.Sprintf("collide %t", collide), func(t *testing.T) {
			t.Parallel()
			l := withTrunk(t)
			l.pod("a")
			_, a := l.awaitBranches("a")
			l.rc.SetFaults(Faults{LoseBranches: true, CollideVLANs: collide})
			if err := l.rc.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.pod("b")
			_, b := l.awaitBranches("b")
			if got := b[0].VLAN == a[0].VLAN; got != collide {
				t.Errorf("VLAN ids %d and %d", a[0].VLAN, b[0].VLAN)
			}
			if !collide {
				h := l.awaitEvent("Pod", "b", "BranchAllocationFailed", 1)
				if !strings.HasPrefix(h.message, "failed to allocate branch ENI to pod: associating branch to trunk, ") {
					t.Errorf("event %+v", h)
				}
			}
		})
	}
}
