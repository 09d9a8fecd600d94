package vpcrc

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
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

func TestNode_GetsACNINode(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.awaitCNINode()
	node := read[corev1.Node](l, nodesResource, "", l.name)
	owner := metav1.GetControllerOf(c)
	if owner == nil || owner.Kind != "Node" || owner.APIVersion != "v1" || owner.UID != node.UID {
		t.Errorf("owner %+v", owner)
	}
	if !slices.Equal(c.Finalizers, []string{cninodeFinalizer}) || c.Labels["kubernetes.io/os"] != "linux" {
		t.Errorf("metadata %+v", c.ObjectMeta)
	}
	if !maps.Equal(c.Spec.Tags, map[string]string{cninodeClusterTag: "cluster"}) || len(c.Spec.Features) != 0 {
		t.Errorf("spec %+v", c.Spec)
	}
	if _, there := l.trunk(); there || l.capacity() != "" {
		t.Error("a trunk without a feature that needs it")
	}
}

func TestCNINode_IsCompleted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.awaitCNINode()
	l.patch(cninodesResource, "", l.name, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"kubernetes.io/os": nil}, "finalizers": []string{"example.com/other"}},
		"spec":     map[string]any{"tags": map[string]any{"a": "b", cninodeClusterTag: nil}},
	})
	testenv.EventuallyErr(l.t, "completed", func() error {
		c := l.cninode()
		if c.Labels["kubernetes.io/os"] != "linux" || !slices.Equal(c.Finalizers, []string{"example.com/other", cninodeFinalizer}) ||
			!maps.Equal(c.Spec.Tags, map[string]string{"a": "b", cninodeClusterTag: "cluster"}) {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}

func TestFeature_GivesATrunk(t *testing.T) {
	t.Parallel()
	l := withTrunk(t)
	trunk, _ := l.trunk()
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
	if got := l.capacity(); got != "9" {
		t.Errorf("capacity %s", got)
	}
	for reason, message := range map[string]string{
		"ControllerVersionNotice": "The node is managed by VPC resource controller version v1.8.2",
		"NodeTrunkInitiated":      "The node has trunk interface initialized successfully",
	} {
		if h := l.awaitEvent("Node", l.name, reason, 1); h != (happened{"Normal", reason, message, 1, types.UID(l.name)}) {
			t.Errorf("event %+v", h)
		}
	}
}

func TestCapacity_IsWrittenAgain(t *testing.T) {
	t.Parallel()
	l := withTrunk(t)
	if err := l.rcAPI().merge(t.Context(), nodesResource, "", l.name, map[string]any{"status": map[string]any{"capacity": map[string]any{podENIKey: "3"}}}, "status"); err != nil {
		t.Fatal(err)
	}
	testenv.EventuallyErr(l.t, "capacity", func() error {
		if got := l.capacity(); got != "9" {
			return errors.New(got)
		}
		return nil
	})
}

func TestLabel_OfOldIsAWishToo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.patch(nodesResource, "", l.name, map[string]any{"metadata": map[string]any{"labels": map[string]any{trunkLabel: "false"}}})
	l.awaitTrunk()
}

func TestAutoNode_IsLeftAlone(t *testing.T) {
	t.Parallel()
	auto := func(n *corev1.Node) { n.Labels[computeTypeLabel] = "auto" }
	l := newLab(t)
	name := l.name + "-auto"
	l.api.CreateNode(t, name, auto)
	testenv.EventuallyErr(l.t, "the controller knows the Node", func() error {
		if l.rc.current.nodeObject(name) == nil {
			return errors.New("it does not")
		}
		return nil
	})
	if _, err := l.rc.current.reconcileNode(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if c := read[cninode](l, cninodesResource, "", name); c != nil {
		t.Errorf("CNINode %+v", c)
	}
}

func TestCustomNetworking_MovesTrunkAndBranches(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n, err := l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: l.vpc, CIDR: netip.MustParsePrefix("10.0.9.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	group := l.world.AddSecurityGroup(l.vpc, "custom")
	l.create(eniConfigsResource, "ENIConfig", l.name, map[string]any{"subnet": n.ID, "securityGroups": []any{group}})
	l.want(feature{featurePodGroups, ""}, feature{featureCustom, l.name})
	trunk := l.awaitTrunk()
	if trunk.SubnetID != n.ID || !slices.Equal(trunk.SecurityGroups, []string{group}) {
		t.Errorf("trunk %+v", trunk)
	}
	l.pod("a")
	_, b := l.awaitBranches("a")
	eni, _ := l.world.ENI(b[0].ENI)
	if eni.SubnetID != n.ID || !slices.Equal(eni.SecurityGroups, []string{group}) || b[0].SubnetCIDR != "10.0.9.0/24" || b[0].IPv6 != "" {
		t.Errorf("branch %+v of %+v", b[0], eni)
	}
	if b[0].SubnetCIDR6 != "2001:db8:1::/64" {
		t.Errorf("subnetV6Cidr is %q, want the instance subnet's", b[0].SubnetCIDR6)
	}
}

func TestCustomNetworking_WithoutAName(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.want(feature{featurePodGroups, ""}, feature{featureCustom, ""})
	h := l.awaitEvent("Node", l.name, "EniConfigNameNotFound", 1)
	node := read[corev1.Node](l, nodesResource, "", l.name)
	if h.message != "couldn't find custom networking eniconfig name for node "+l.name+", error: resource was not found" || h.uid != node.UID {
		t.Errorf("event %+v", h)
	}
}

func TestCooldown_OfTheConfigMap(t *testing.T) {
	t.Parallel()
	l := newLabOn(t, kubeapi.Start(t), "m5.large")
	set := func(seconds string) {
		t.Helper()
		u := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": configName}, "data": map[string]any{configCooldown: seconds}}
		if err := l.apply(configMapsResource, configNamespace, configName, u); err != nil {
			t.Fatal(err)
		}
	}
	set("90")
	if h := l.awaitEvent("Node", l.name, "BranchENICoolDownPeriodUpdated", 1); h.message != "Branch ENI cool down period has been updated to 1m30s" {
		t.Errorf("event %+v", h)
	}
}

func TestNode_ThatStaysAwayIsForgotten(t *testing.T) {
	t.Parallel()
	l := withTrunk(t)
	l.awaitState("trunk", func(s NodeState) bool { return s.Trunk != "" })
	if err := l.api.Objects().Resource(nodesResource).Delete(t.Context(), l.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	l.awaitState("forgotten", func(s NodeState) bool { return s.Trunk == "" })
}

// metadataShows reports whether the metadata service shows an ENI.
func (l *lab) metadataShows(e fakeaws.ENI) bool {
	l.t.Helper()
	h := fakeaws.IMDSHandler(l.world, fakeaws.OneInstance(l.instance.ID))
	ask := func(method, path, header, value string) string {
		q := httptest.NewRequestWithContext(l.t.Context(), method, "http://169.254.169.254/latest/"+path, nil)
		q.Header.Set(header, value)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, q)
		return w.Body.String()
	}
	token := ask(http.MethodPut, "api/token", "X-aws-ec2-metadata-token-ttl-seconds", "60")
	return strings.Contains(ask(http.MethodGet, "meta-data/network/interfaces/macs/", "X-aws-ec2-metadata-token", token), e.MAC)
}

func TestTrunk_IsSeenByTheMetadataServiceLater(t *testing.T) {
	t.Parallel()
	l := withTrunk(t, faulty(Faults{TrunkMetadataLag: 1000 * time.Hour}))
	trunk, _ := l.trunk()
	if l.metadataShows(trunk) {
		t.Error("the metadata service shows the trunk")
	}
	l.world.Unveil(trunk.ID)
	if !l.metadataShows(trunk) {
		t.Error("the metadata service does not show the trunk")
	}
}
