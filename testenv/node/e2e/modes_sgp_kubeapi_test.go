package e2e_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/aws/vpcrc"
)

// TestModes_SecurityGroupsForPods: nodes request a trunk from the VPC resource controller, and
// pods get the branch ENIs that it announces, even if something is late or wrong.
func TestModes_SecurityGroupsForPods(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, map[string]func(*testing.T){
		"branch pods beside ordinary ones":       branchPods,
		"the plugin has lost its record":         branchRecordLost,
		"an older pod of the same name":          branchOlderPod,
		"a slot is kept for the trunk":           trunkSlotKept,
		"no slot is kept that no trunk can have": trunkSlotNotKept,
		"no slot is free for a trunk":            trunkNoSlot,
		"the trunk is in the metadata first": func(t *testing.T) {
			trunkSeen(t, vpcrc.Timing{TrunkMetadataAfter: -1, TrunkDescribeAfter: 20 * time.Second})
		},
		"the trunk is in EC2's lists first":  func(t *testing.T) { trunkSeen(t, vpcrc.Timing{TrunkMetadataAfter: 20 * time.Second}) },
		"the trunk never comes":              trunkNever,
		"the announcement never comes":       branchNever,
		"the daemon ends before it comes":    branchDaemonEnds,
		"announcements of other controllers": branchSpellings,
		"announcements that cannot be used":  branchUnusable,
		"a VLAN id is used again at once":    branchVLANAgain,
		"an announcement is another pod's":   branchForged,
		"the CNINode goes under a live node": cniNodeDeleted,
		"another writer of the CNINode":      cniNodeContended,
		"custom networking":                  trunkOfENIConfig,
		"IPv6":                               branchIPv6,
		"IPv6 in a subnet that assigns none": trunkWithoutIPv6,
		"the mode is standard":               branchStandard,
	}, func(t *testing.T, row func(*testing.T)) { row(t) })
}

// branchPods: the CNINode is created after the daemon's start, a trunk follows, a pod's
// annotation is late, and ordinary pods run beside it.
func branchPods(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	m.start(groupsForPods(nil))
	m.logged("trunk ENI not requested", "VPC resource controller creates it")
	c.control(m)
	m.awaitFeature(wantsTrunk)
	trunk := m.withTrunk()

	pod := m.bind("late", wantsBranch)
	began := time.Now()
	got := m.add(pod)
	if took := time.Since(began); took < branchAfter/2 { //realtime: a lower bound
		t.Errorf("the ADD took %v and did not wait for the annotation", took)
	}
	b := c.branchOf(pod)
	want := &cniwire.AddReply{
		Success: true, Allocations: []cniwire.Allocation{{IPv4: b.IPv4, Device: -1, RouteTable: 0}}, VPCv4CIDRs: []string{"10.1.0.0/16"},
		PodVLANID: b.VLAN, PodENIMAC: b.MAC, PodENISubnetGW: gatewayOf(c.subnet).String(), ParentIfIndex: int32(m.linkIndex(trunk.MAC)),
	}
	if diff := cmp.Diff(want, got); diff != "" || b.VLAN == 0 || got.ParentIfIndex == 0 {
		t.Errorf("reply to a branch pod (-want +got):\n%s", diff)
	}
	if again := m.add(pod); !cmp.Equal(want, again) {
		t.Errorf("reply to the same once more: %+v", again)
	}
	c.recorded(m.Node, "trunk", "one-pod", nil)
	m.notInThePool(b.IPv4)

	ordinary := m.add(m.bind("ordinary"))
	second := m.add(m.bind("of-second-container", func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "second", Image: "x", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{podENI: resource.MustParse("1")},
		}})
	}))
	for _, r := range []*cniwire.AddReply{ordinary, second} {
		if !r.Success || r.PodVLANID != 0 || r.PodENIMAC != "" || len(r.Allocations) != 1 || r.Allocations[0].Device < 0 {
			t.Errorf("reply to an ordinary pod: %+v", r)
			continue
		}
		owner, _ := c.world.OwnerOf(netip.MustParseAddr(r.Allocations[0].IPv4))
		if owner.ID == trunk.ID || owner.Attachment.InstanceID != m.InstanceID {
			t.Errorf("%s is of %+v", r.Allocations[0].IPv4, owner)
		}
	}
	c.untouched(trunk)
	m.neverWrote()
	kernel, err := m.KernelState()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(kernel.Rules, "20:\tfrom all lookup local") || strings.Contains(kernel.Rules, "\n0:\tfrom all lookup local") || strings.HasPrefix(kernel.Rules, "0:") {
		t.Errorf("rules of strict mode:\n%s", kernel.Rules)
	}
	if !strings.Contains(kernel.IPTables, "vlan+") {
		t.Errorf("no rule is for links of branch pods:\n%s", kernel.IPTables)
	}
	if strings.Contains(kernel.Rules, "from "+trunk.PrimaryIP.String()+" ") {
		t.Errorf("the trunk's own address has a rule:\n%s", kernel.Rules)
	}
}

// branchRecordLost: if the result of a sandbox's ADD was not kept, the plugin asks the daemon
// what the sandbox had.
func branchRecordLost(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m)
	m.start(groupsForPods(nil))
	m.withTrunk()
	pod := m.bind("p", wantsBranch)
	if r := m.add(pod); !r.Success {
		t.Fatalf("%+v", r)
	}
	b := c.branchOf(pod)
	want := &cniwire.DelReply{Success: true, PodVLANID: b.VLAN, Allocations: []cniwire.Allocation{{IPv4: b.IPv4, Device: -1}}}
	if got := m.del(pod); !cmp.Equal(want, got) {
		t.Errorf("DEL of the pod: %+v", got)
	}
	older := m.request(pod)
	older.PodUID = "11111111-2222-3333-4444-555555555555"
	if got := c.wireDel(m.Node, older); !got.Unknown || got.PodVLANID != 0 {
		t.Errorf("DEL of an older sandbox: %+v", got)
	}
	c.api.DeletePod(t, pod.Namespace, pod.Name)
	testenv.Eventually(c.t, "the DEL of a pod that is gone is one of an unknown pod", func() bool {
		r := m.del(pod)
		return r.Unknown && r.PodVLANID == 0
	})
}

// branchOlderPod: kubelet sees a pod before our watch does, while its predecessor of the same
// name has an annotation.
func branchOlderPod(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m)
	m.start(groupsForPods(nil))
	m.withTrunk()
	older := m.bind("web-0", wantsBranch)
	if r := m.add(older); !r.Success {
		t.Fatalf("%+v", r)
	}
	asked := func() string { return value(m.c.scrape(m.Node), "awscni_add_ip_req_count") }
	before := asked()
	if err := m.proxy.Hang(); err != nil {
		t.Fatal(err)
	}
	c.api.DeletePod(t, older.Namespace, older.Name)
	newer := m.bind("web-0", wantsBranch)
	replied := make(chan *cniwire.AddReply)
	go func() { replied <- m.add(newer) }()
	testenv.Eventually(c.t, "the ADD is with the daemon", func() bool { return asked() != before })
	if err := m.proxy.Restore(); err != nil {
		t.Fatal(err)
	}
	r := <-replied
	if b := c.branchOf(newer); !r.Success || r.PodENIMAC != b.MAC || r.PodVLANID != b.VLAN {
		t.Errorf("the newer pod has %+v and got %+v", b, r)
	}
}

// trunkSlotKept: until the trunk exists, the slot that it will need is reserved.
func trunkSlotKept(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	m.start(groupsForPods(nil))
	const room = 2 * 9 // of three ENIs
	for range room {
		if r := m.addMore(); !r.Success {
			t.Fatalf("%+v", r)
		}
	}
	full := func() {
		t.Helper()
		if r := m.addMore(); r.Success || r.Cause != "pool-full" {
			t.Errorf("one pod more got %+v", r)
		}
		if limit := *m.summary().Cards[0].AddressLimit; limit != room {
			t.Errorf("the node has room for %d pods, want %d", limit, room)
		}
	}
	full()
	c.control(m)
	trunk := m.withTrunk()
	if trunk.Attachment.Device != 2 {
		t.Errorf("trunk %+v", trunk)
	}
	full()
	if r := m.add(m.bind("branch", wantsBranch)); !r.Success || r.PodVLANID == 0 {
		t.Errorf("a branch pod of a full node got %+v", r)
	}
	c.untouched(trunk)
}

// trunkSlotNotKept: no slot is reserved on an instance type that cannot have a trunk.
func trunkSlotNotKept(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "t3.medium"})
	c.control(m)
	m.start(groupsForPods(map[string]string{"CNI_ADD_WAIT": "5s"}))
	for range 3 * 5 {
		if r := m.addMore(); !r.Success {
			t.Fatalf("%+v", r)
		}
	}
	if f := m.features(); len(f) > 0 {
		t.Errorf("the controller was asked for %v", f)
	}
}

// trunkNoSlot: when unmanaged ENIs use all slots, no trunk is requested, and nothing else is
// affected.
func trunkNoSlot(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m)
	for device := 1; device <= 2; device++ {
		e, err := c.world.CreateENI(fakeaws.ENISpec{SubnetID: c.subnet.ID, Tags: map[string]string{"node.k8s.amazonaws.com/no_manage": "true"}})
		if err == nil {
			_, err = c.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: m.InstanceID, Device: device})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m.start(groupsForPods(nil))
	m.logged("No slot available for a trunk ENI to be attached.")
	if r := m.addMore(); !r.Success {
		t.Errorf("%+v", r)
	}
	if f := m.features(); len(f) > 0 {
		t.Errorf("the controller was asked for %v", f)
	}
}

// trunkSeen: the metadata and EC2 show the trunk at different times. Only EC2 shows that it
// is a trunk, so the ENI must not be used before.
func trunkSeen(t *testing.T, when vpcrc.Timing) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	when.BranchAfter = -1
	c.control(m, func(o *vpcrc.Options) { o.Timing = when })
	m.start(groupsForPods(nil))
	pod := m.bind("p", wantsBranch)
	if r := m.add(pod); !r.Success || r.PodVLANID == 0 {
		t.Errorf("%+v", r)
	}
	trunk := m.withTrunk()
	if len(trunk.SecondaryIPs) > 0 {
		t.Errorf("the trunk was taken for an ordinary ENI: %+v", trunk)
	}
	m.notInThePool(trunk.PrimaryIP.String())
}

// trunkNever: EC2 refuses the trunk to the controller. A branch pod's ADD fails with that
// reason, ordinary pods are not affected, and the trunk comes once the controller may
// create it.
func trunkNever(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	rc := c.control(m, faulty(vpcrc.Faults{TrunkUnauthorized: true}))
	m.start(groupsForPods(map[string]string{"CNI_ADD_WAIT": "2s"}))
	m.awaitFeature(wantsTrunk)
	m.failsWith(m.bind("branch", wantsBranch), "trunk-missing", "Send AddNetworkReply: No trunk ENI found, cannot add a pod ENI")
	if r := m.addMore(); !r.Success {
		t.Errorf("an ordinary pod got %+v", r)
	}
	rc.SetFaults(vpcrc.Faults{})
	c.mergePatch(nodeObjects, "", m.name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"touched": "yes"}}})
	m.withTrunk()
}

// branchNever: the controller has no branch ENI left and never annotates the pod.
func branchNever(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m, faulty(vpcrc.Faults{AtCapacity: true}))
	m.start(groupsForPods(map[string]string{"CNI_ADD_WAIT": "1s"}))
	m.withTrunk()
	began := time.Now()
	r := m.failsWith(m.bind("p", wantsBranch), "branch-pending", "Send AddNetworkReply: failed to get Branch ENI resource")
	if took := time.Since(began); took < time.Second || !r.Transient { //realtime: a lower bound
		t.Errorf("failed after %v: %+v", took, r)
	}
	gone := m.request(m.bind("gone", wantsBranch))
	c.api.DeletePod(t, c.namespace, "gone")
	testenv.Eventually(c.t, "a pod that is gone is unknown", func() bool { return c.wireAdd(m.Node, gone).Cause == "pod-unknown" })
	m.logged("Send AddNetworkReply: Failed to get pod:", "gone")
}

// branchDaemonEnds: a pod that waits for its annotation does not delay the daemon's exit, and
// its ADD fails.
func branchDaemonEnds(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m, faulty(vpcrc.Faults{AtCapacity: true}))
	m.start(groupsForPods(map[string]string{"CNI_ADD_WAIT": "60s"}))
	m.withTrunk()
	pod := m.bind("p", wantsBranch)
	asked := value(c.scrape(m.Node), "awscni_add_ip_req_count")
	replied := make(chan *cniwire.AddReply)
	go func() { replied <- m.add(pod) }()
	testenv.Eventually(c.t, "the ADD is with the daemon", func() bool { return value(c.scrape(m.Node), "awscni_add_ip_req_count") != asked })
	testenv.Within(t, 45*time.Second, "the daemon's end while an ADD waits for 60 s", func() { c.kill(m.Node, syscall.SIGTERM) })
	if r := <-replied; r.Success || r.Cause != "daemon-terminating" || !r.Transient {
		t.Errorf("%+v", r)
	}
}

// branchSpellings checks annotations as other versions of the controller write them.
func branchSpellings(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	rc := c.control(m, func(o *vpcrc.Options) { o.Timing.BranchAfter = -1 })
	m.start(groupsForPods(map[string]string{"CNI_ADD_WAIT": "10s"}))
	m.withTrunk()
	for name, f := range map[string]vpcrc.Faults{
		"twice": {AnnotationTwice: true}, "vlanid": {AnnotationVLANID: true}, "without-ipv6": {AnnotationNoIPv6: true},
	} {
		rc.SetFaults(f)
		pod := m.bind(name, wantsBranch)
		r := m.add(pod)
		if b := c.branchOf(pod); !r.Success || r.PodVLANID != b.VLAN || r.PodENIMAC != b.MAC || r.Allocations[0].IPv4 != b.IPv4 {
			t.Errorf("%s: %s gives %+v", name, c.annotation(pod, podENI), r)
		}
	}
	rc.SetFaults(vpcrc.Faults{AnnotationCIDR: true})
	r := m.failsWith(m.bind("wrong-cidr", wantsBranch), "branch-invalid", "Send AddNetworkReply: Failed to parse V4 subnet CIDR:")
	if r.Transient || !strings.Contains(r.Detail, "192.0.2.0/24") {
		t.Errorf("%+v", r)
	}
}

// branchUnusable: each kind of unusable annotation fails the ADD at once, with upstream's log
// line.
func branchUnusable(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m)
	m.start(groupsForPods(nil))
	m.withTrunk()
	const (
		unmarshal = "Send AddNetworkReply: Failed to unmarshal PodENIData JSON:"
		parse     = "Send AddNetworkReply: Failed to parse pod-ENI annotation:"
		subnet    = "Send AddNetworkReply: Failed to parse V4 subnet CIDR:"
	)
	entry := func(mac, ip, vlan, cidr string) string {
		return fmt.Sprintf(`[{"eniId":"eni-0123456789abcdef0","ifAddress":"%s","privateIp":"%s","ipv6Addr":"","vlanId":%s,"subnetCidr":"%s"}]`, mac, ip, vlan, cidr)
	}
	const mac, ip, cidr = "06:25:70:70:b1:69", "10.1.0.77", "10.1.0.0/20"
	for name, row := range map[string]struct{ value, line string }{
		"no-json":      {"{", unmarshal},
		"no-list":      {`{"vlanId":1}`, unmarshal},
		"empty-list":   {`[]`, unmarshal},
		"no-mac":       {entry("", ip, "1", cidr), parse},
		"odd-mac":      {entry("01:25:70:70:b1:69", ip, "1", cidr), parse},
		"no-address":   {entry(mac, "", "1", cidr), parse},
		"no-vlan":      {entry(mac, ip, "0", cidr), parse},
		"vlan-of-text": {entry(mac, ip, `"1"`, cidr), unmarshal},
		"high-vlan":    {entry(mac, ip, "4095", cidr), parse},
		"no-subnet":    {entry(mac, ip, "1", ""), subnet},
		"other-subnet": {entry(mac, ip, "1", "192.0.2.0/24"), subnet},
	} {
		if r := m.failsWith(m.bind(name, announced(row.value)), "branch-invalid", row.line); r.Transient {
			t.Errorf("%s: to be tried again: %+v", name, r)
		}
	}
}

// branchForged: someone gives a pod the announcement of another pod. It gets no branch ENI, also
// after a restart of the daemon, and an event names both pods. The other pod keeps its branch ENI,
// and gets it in a new sandbox when the first is gone.
func branchForged(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m, func(o *vpcrc.Options) { o.Timing.BranchAfter = -1 })
	m.start(groupsForPods(nil))
	m.withTrunk()
	victim := m.bind("victim", wantsBranch)
	if r := m.add(victim); !r.Success {
		t.Fatalf("%+v", r)
	}
	forged := m.bind("forged", announced(c.annotation(victim, podENI)))
	refused := func(pod *corev1.Pod) {
		t.Helper()
		r := m.failsWith(pod, "branch-conflict", "Send AddNetworkReply: Branch ENI of the pod is that of another pod:")
		if r.Transient || !strings.Contains(r.Detail, forged.Namespace+"/forged") || !strings.Contains(r.Detail, victim.Namespace+"/victim") {
			t.Errorf("%+v", r)
		}
	}
	refused(forged)
	testenv.Eventually(c.t, "an event that names both", func() bool {
		note, _ := c.evented("Pod", "forged", "BranchConflict")
		return strings.Contains(note, forged.Namespace+"/forged") && strings.Contains(note, victim.Namespace+"/victim")
	})
	if r := m.del(forged); r.Success && r.PodVLANID != 0 {
		t.Errorf("the DEL of its sandbox got %+v", r)
	}
	m.restart(groupsForPods(nil))
	refused(forged)
	refused(victim) // it cannot be told whose the branch ENI is
	c.api.DeletePod(t, forged.Namespace, forged.Name)
	testenv.Eventually(c.t, "the victim's new sandbox", func() bool {
		r := m.add(victim)
		return r.Success && r.PodVLANID == c.branchOf(victim).VLAN
	})
}

// branchVLANAgain: the controller reuses a VLAN id before the previous pod's DEL.
func branchVLANAgain(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m, faulty(vpcrc.Faults{ReuseVLANs: true}), func(o *vpcrc.Options) { o.Timing.BranchAfter = -1 })
	m.start(groupsForPods(nil))
	m.withTrunk()
	first := m.bind("first", wantsBranch)
	if r := m.add(first); !r.Success {
		t.Fatalf("%+v", r)
	}
	vlan := c.branchOf(first).VLAN
	c.api.DeletePod(t, first.Namespace, first.Name)
	var second *corev1.Pod
	for i := 0; second == nil || c.branchOf(second).VLAN != vlan; i++ {
		if i == 5 {
			t.Fatal("the VLAN id was not used again")
		}
		second = m.bind(fmt.Sprintf("second-%d", i), wantsBranch)
		testenv.Eventually(c.t, "its annotation", func() bool { return c.annotation(second, podENI) != "" })
	}
	r := m.add(second)
	if b := c.branchOf(second); !r.Success || r.PodVLANID != vlan || r.PodENIMAC != b.MAC {
		t.Errorf("the second pod has %+v and got %+v", b, r)
	}
	// If the daemon returned this VLAN id, the plugin would remove its device.
	testenv.Eventually(c.t, "the late DEL is one of an unknown pod", func() bool {
		late := m.del(first)
		return late.Unknown && late.PodVLANID == 0
	})
}

// cniNodeDeleted: somebody deletes the CNINode, and it is recreated empty.
func cniNodeDeleted(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m)
	m.start(groupsForPods(nil))
	trunk := m.withTrunk()
	old := c.read(cniNodes, "", m.name)
	if err := c.objects(cniNodes).Delete(t.Context(), m.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(c.t, "the CNINode is gone", func() bool { return m.features() == nil })
	if r := m.add(m.bind("meanwhile", wantsBranch)); !r.Success || r.PodVLANID == 0 {
		t.Errorf("a branch pod without a CNINode got %+v", r)
	}
	empty := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	empty.SetAPIVersion(old.GetAPIVersion())
	empty.SetKind(old.GetKind())
	empty.SetName(m.name)
	empty.SetOwnerReferences(old.GetOwnerReferences())
	c.write(cniNodes, empty)
	m.awaitFeature(wantsTrunk)
	if got := m.withTrunk(); got.ID != trunk.ID {
		t.Errorf("trunk %s, was %s", got.ID, trunk.ID)
	}
}

// cniNodeContended: the list of features is replaced as a whole, so a writer without a
// precondition overwrites what another writer has added in the meantime.
func cniNodeContended(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.write(cniNodes, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "vpcresources.k8s.aws/v1alpha1", "kind": "CNINode", "metadata": map[string]any{"name": m.name}, "spec": map[string]any{},
	}})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	kept := make(chan []string, 1)
	go func() { kept <- c.writeFeatures(ctx, m) }()
	m.start(groupsForPods(nil))
	m.awaitFeature(wantsTrunk)
	stop()
	for _, f := range <-kept {
		if !slices.Contains(m.features(), f) {
			t.Errorf("feature %s was lost: %v", f, m.features())
		}
	}
}

// writeFeatures adds features to a CNINode, one after the other, each by read-modify-write,
// until ctx ends. It returns those that it wrote.
func (c *cluster) writeFeatures(ctx context.Context, m *member) (written []string) {
	for i := 0; ctx.Err() == nil && i < 500; i++ {
		o, err := c.objects(cniNodes).Get(ctx, m.name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		list, _, _ := unstructured.NestedSlice(o.Object, "spec", "features")
		name := fmt.Sprintf("Other%d", i)
		list = append(list[:len(list):len(list)], map[string]any{"name": name, "value": "x"})
		if unstructured.SetNestedSlice(o.Object, list, "spec", "features") != nil {
			continue
		}
		if _, err := c.objects(cniNodes).Update(ctx, o, metav1.UpdateOptions{}); err == nil {
			written = append(written, name+"=x")
		}
	}
	return written
}

// trunkOfENIConfig: the controller must know the ENIConfig before it creates the trunk, so
// both features must be in one patch.
func trunkOfENIConfig(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	podSubnet, err := c.world.AddSubnet(fakeaws.SubnetSpec{VPCID: c.subnet.VPCID, CIDR: netip.MustParsePrefix("10.1.32.0/20")})
	if err != nil {
		t.Fatal(err)
	}
	name := c.namespace
	m := c.join(fakeaws.InstanceSpec{Type: "m5.xlarge"}, func(n *corev1.Node) { n.Annotations = map[string]string{"k8s.amazonaws.com/eniConfig": name} })
	c.eniConfig(name, podSubnet.ID)
	c.control(m)
	changes, err := c.objects(cniNodes).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + m.name})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	m.start(groupsForPods(map[string]string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}))
	for seen := false; !seen; {
		o, _ := testenv.Receive(t, "a change of the CNINode", changes.ResultChan()).Object.(*unstructured.Unstructured)
		if f := featuresOf(o); len(f) > 0 {
			seen = true
			if !slices.Contains(f, wantsTrunk) || !slices.Contains(f, "CustomNetworking="+name) {
				t.Errorf("the first features are %v", f)
			}
		}
	}
	if trunk := m.withTrunk(); trunk.SubnetID != podSubnet.ID {
		t.Errorf("trunk in %s, want %s", trunk.SubnetID, podSubnet.ID)
	}
	r := m.add(m.bind("branch", wantsBranch))
	if !r.Success || r.PodENISubnetGW != gatewayOf(podSubnet).String() || !podSubnet.CIDR.Contains(netip.MustParseAddr(r.Allocations[0].IPv4)) {
		t.Errorf("branch pod: %+v", r)
	}
	if r := m.addMore(); !r.Success || !podSubnet.CIDR.Contains(netip.MustParseAddr(r.Allocations[0].IPv4)) {
		t.Errorf("ordinary pod: %+v", r)
	}
}

// branchIPv6: the daemon retries until the feature is set, and the pod has only IPv6.
func branchIPv6(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.joinIPv6(true)
	m.start(groupsForPods(ipv6Settings))
	m.logged("trunk ENI not requested")
	c.control(m)
	trunk := m.withTrunk()
	pod := m.bind("p", wantsBranch)
	got := m.add(pod)
	b := c.branchOf(pod)
	want := &cniwire.AddReply{
		Success: true, Allocations: []cniwire.Allocation{{IPv6: b.IPv6, Device: -1}}, VPCv6CIDRs: []string{"2001:db8:2::/56"},
		PodVLANID: b.VLAN, PodENIMAC: b.MAC, PodENISubnetGW: "fe80:ec2::1", ParentIfIndex: int32(m.linkIndex(trunk.MAC)),
	}
	if diff := cmp.Diff(want, got); diff != "" || b.IPv6 == "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	if del := m.del(pod); !del.Success || del.PodVLANID != b.VLAN || len(del.Allocations) != 1 || del.Allocations[0].IPv6 != b.IPv6 {
		t.Errorf("DEL: %+v", del)
	}
	m.notInThePool(b.IPv6)
	if r := m.addMore(); !r.Success || r.PodVLANID != 0 || r.Allocations[0].IPv6 == "" {
		t.Errorf("ordinary pod: %+v", r)
	}
	m.failsWith(m.bind("ipv4-alone", announced(`[{"ifAddress":"06:25:70:70:b1:69","privateIp":"10.2.0.9","vlanId":9,"subnetCidr":"10.2.0.0/20"}]`)),
		"branch-invalid", "Send AddNetworkReply: Failed to parse pod-ENI annotation:")
	m.failsWith(m.bind("no-ipv6-subnet", announced(`[{"ifAddress":"06:25:70:70:b1:69","ipv6Addr":"2001:db8:2::99","vlanId":9}]`)),
		"branch-invalid", "Send AddNetworkReply: Failed to parse V6 subnet CIDR:")
}

// trunkWithoutIPv6: a trunk without an IPv6 address is used like any other; upstream exits
// because of it. A branch ENI without one is unusable, and its pod's error says what to do.
func trunkWithoutIPv6(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.joinIPv6(false)
	c.control(m)
	m.start(groupsForPods(ipv6Settings))
	if trunk := m.withTrunk(); len(trunk.IPv6s) > 0 {
		t.Errorf("trunk %+v", trunk)
	}
	r := m.failsWith(m.bind("p", wantsBranch), "branch-invalid", "Send AddNetworkReply: Failed to parse pod-ENI annotation:")
	if !strings.Contains(r.Detail, "the subnet must auto-assign IPv6 addresses") {
		t.Errorf("%+v", r)
	}
	if r := m.addMore(); !r.Success {
		t.Errorf("ordinary pod: %+v", r)
	}
}

var ipv6Settings = map[string]string{"ENABLE_IPv4": "false", "ENABLE_IPv6": "true", "ENABLE_PREFIX_DELEGATION": "true"}

// joinIPv6 boots an instance in a dual-stack subnet.
func (c *cluster) joinIPv6(assigns bool) *member {
	c.t.Helper()
	v := c.world.AddVPC(netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("2001:db8:2::/56"))
	six, err := c.world.AddSubnet(fakeaws.SubnetSpec{
		VPCID: v.ID, CIDR: netip.MustParsePrefix("10.2.0.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:2::/64"), AssignIPv6: assigns,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.join(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: six.ID, IPv6: true})
}

// branchStandard: in standard mode the rule for the local table keeps its priority.
func branchStandard(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	c.control(m)
	m.start(groupsForPods(map[string]string{"POD_SECURITY_GROUP_ENFORCING_MODE": "standard"}))
	m.withTrunk()
	if r := m.add(m.bind("p", wantsBranch)); !r.Success || r.PodVLANID == 0 {
		t.Errorf("%+v", r)
	}
	s, err := m.KernelState()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.Rules, "0:\tfrom all lookup local") || strings.Contains(s.Rules, "20:\tfrom all lookup local") {
		t.Errorf("rules of standard mode:\n%s", s.Rules)
	}
}
