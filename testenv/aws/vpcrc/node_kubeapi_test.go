package vpcrc

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/testenv/aws/fakeaws"
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
