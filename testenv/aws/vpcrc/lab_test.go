package vpcrc

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/kube/kubeapi"
)

// scale shortens a cool-down of a minute to 0.6 s.
const scale = 0.01

// lab is a node of type m5.large (3 ENIs, 9 branches) in a separate world, with a controller
// that gives it a trunk.
type lab struct {
	t        *testing.T
	api      *kubeapi.Server
	world    *fakeaws.World
	instance *fakeaws.Instance
	rc       *Controller
	name     string // of the Node and of the namespace
}

func newLab(t *testing.T) *lab {
	t.Helper()
	s := kubeapi.Shared(t)
	l := &lab{t: t, api: s, name: s.Name(t), world: fakeaws.NewWorld(fakeaws.Options{})}
	t.Cleanup(l.world.Close)
	v := l.world.AddVPC(netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	n, err := l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.0.0.0/24"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1::/64"), AssignIPv6: true})
	if err != nil {
		t.Fatal(err)
	}
	if l.instance, err = l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: n.ID}); err != nil {
		t.Fatal(err)
	}
	s.CreateNamespace(t, l.name)
	s.CreateNode(t, l.name, func(n *corev1.Node) { n.Spec.ProviderID = "aws:///us-west-2a/" + l.instance.ID })
	if l.rc, err = Start(t.Context(), Options{Objects: s.Objects(), World: l.world, Scale: scale, Node: l.name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.rc.Stop()
		if err := l.world.Check(); err != nil {
			t.Error(err)
		}
	})
	var cn *cninode
	testenv.Eventually(t, "a CNINode", func() bool { cn = read[cninode](l, cninodesResource, "", l.name); return cn != nil })
	if owner := metav1.GetControllerOf(cn); owner == nil || owner.Kind != "Node" || owner.Name != l.name || len(cn.Spec.Features) != 0 {
		t.Errorf("CNINode %+v", cn)
	}
	// The node's daemon asks for a trunk.
	features := map[string]any{"spec": map[string]any{"features": []feature{{Name: featurePodGroups}}}}
	if err := l.rc.merge(cninodesResource, "", l.name, features); err != nil {
		t.Fatal(err)
	}
	return l
}

func read[T any](l *lab, res schema.GroupVersionResource, namespace, name string) *T {
	l.t.Helper()
	o, err := get[T](l.rc, res, namespace, name)
	if err != nil {
		l.t.Fatal(err)
	}
	return o
}

// trunk waits for the capacity, and returns the trunk.
func (l *lab) trunk() fakeaws.ENI {
	l.t.Helper()
	testenv.Eventually(l.t, "capacity of nine branches", func() bool {
		q := read[corev1.Node](l, nodesResource, "", l.rc.opts.Node).Status.Capacity[podENIKey]
		return q.String() == "9"
	})
	for _, e := range l.world.ENIsOf(l.instance.ID) {
		if e.Type == "trunk" {
			return e
		}
	}
	l.t.Fatal("capacity without a trunk")
	return fakeaws.ENI{}
}

// pod creates a bound pod that requests a branch ENI, in the form the webhook leaves it.
func (l *lab) pod(name string) *corev1.Pod {
	l.t.Helper()
	return l.api.CreatePod(l.t, l.name, name, l.name, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{podENIKey: resource.MustParse("1")}
	})
}

// awaitBranches waits for a pod's annotation.
func (l *lab) awaitBranches(pod string) (text string, branches []branch) {
	l.t.Helper()
	testenv.EventuallyErr(l.t, "annotation of "+pod, func() error {
		if text = read[corev1.Pod](l, podsResource, l.name, pod).Annotations[podENIKey]; text == "" {
			return fmt.Errorf("not there; events %v", l.events("Pod", pod))
		}
		return nil
	})
	if err := json.Unmarshal([]byte(text), &branches); err != nil {
		l.t.Fatal(err)
	}
	return text, branches
}

// happened is the part of an event that tests compare.
type happened struct {
	kind, reason, message string
	count                 int32
	uid                   types.UID
}

func (l *lab) events(kind, name string) []happened {
	l.t.Helper()
	namespace := l.name
	if kind != "Pod" {
		namespace = metav1.NamespaceDefault
	}
	list, err := l.rc.of(eventsResource, namespace).List(l.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name})
	if err != nil {
		l.t.Fatal(err)
	}
	var out []happened
	for i := range list.Items {
		e, err := into[corev1.Event](&list.Items[i])
		if err != nil {
			l.t.Fatal(err)
		}
		if e.Source.Component != eventComponent {
			l.t.Errorf("event %s of %q", e.Reason, e.Source.Component)
		}
		out = append(out, happened{e.Type, e.Reason, e.Message, e.Count, e.InvolvedObject.UID})
	}
	return out
}

// awaitEvent waits for an event with this reason and at least this count.
func (l *lab) awaitEvent(kind, name, reason string, atLeast int32) happened {
	l.t.Helper()
	var found happened
	testenv.EventuallyErr(l.t, "event "+reason, func() error {
		all := l.events(kind, name)
		at := slices.IndexFunc(all, func(h happened) bool { return h.reason == reason && h.count >= atLeast })
		if at < 0 {
			return fmt.Errorf("not among %v", all)
		}
		found = all[at]
		return nil
	})
	return found
}
