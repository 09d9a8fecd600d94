package vpcrc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/kube/kubeapi"
)

// scale shortens a cool-down of a minute to 0.6 s.
const scale = 0.01

// lab is a node of type m5.large (3 ENIs, 9 branches) in a separate world, with a controller
// that manages it.
type lab struct {
	t        *testing.T
	api      *kubeapi.Server
	world    *fakeaws.World
	instance *fakeaws.Instance
	vpc      string
	name     string // of the Node and of the namespace
}

func newLab(t *testing.T) *lab {
	t.Helper()
	s := kubeapi.Shared(t)
	l := &lab{t: t, api: s, name: s.Name(t), world: fakeaws.NewWorld(fakeaws.Options{})}
	t.Cleanup(l.world.Close)
	l.vpc = l.world.AddVPC(netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56")).ID
	n, err := l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: l.vpc, CIDR: netip.MustParsePrefix("10.0.0.0/24"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1::/64"), AssignIPv6: true})
	if err != nil {
		t.Fatal(err)
	}
	if l.instance, err = l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: n.ID}); err != nil {
		t.Fatal(err)
	}
	s.CreateNamespace(t, l.name)
	l.create(accountsResource, "ServiceAccount", "default", nil)
	l.createNode()
	rc, err := Start(t.Context(), Options{Kube: s.Admin(), World: l.world, Scale: scale, Nodes: []string{l.name}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		rc.Stop()
		if err := l.world.Check(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func (l *lab) createNode() {
	l.t.Helper()
	l.api.CreateNode(l.t, l.name, func(n *corev1.Node) { n.Spec.ProviderID = "aws:///us-west-2a/" + l.instance.ID })
}

// withTrunk returns a lab whose node has its trunk.
func withTrunk(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.want(feature{Name: featurePodGroups})
	l.awaitTrunk()
	return l
}

func (l *lab) create(res schema.GroupVersionResource, kind, name string, spec map[string]any) {
	l.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if spec != nil {
		u.Object["spec"] = spec
	}
	u.SetAPIVersion(res.GroupVersion().String())
	u.SetKind(kind)
	u.SetName(name)
	namespace := l.name
	if res == eniConfigsResource {
		namespace = ""
	}
	if _, err := l.rcAPI().of(res, namespace).Create(l.t.Context(), u, metav1.CreateOptions{}); err != nil {
		l.t.Fatalf("create %s %s: %v", kind, name, err)
	}
}

// rcAPI accesses the API as the administrator.
func (l *lab) rcAPI() *api { return &api{objects: l.api.Objects()} }

func read[T any](l *lab, res schema.GroupVersionResource, namespace, name string) *T {
	l.t.Helper()
	o, err := get[T](l.t.Context(), l.rcAPI(), res, namespace, name)
	if err != nil {
		l.t.Fatal(err)
	}
	return o
}

func (l *lab) patch(res schema.GroupVersionResource, namespace, name string, patch map[string]any) {
	l.t.Helper()
	if err := l.rcAPI().merge(l.t.Context(), res, namespace, name, patch); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) cninode() *cninode {
	l.t.Helper()
	return read[cninode](l, cninodesResource, "", l.name)
}

// want writes features as the node's daemon does, once the CNINode exists.
func (l *lab) want(features ...feature) {
	l.t.Helper()
	l.awaitCNINode()
	l.patch(cninodesResource, "", l.name, map[string]any{"spec": map[string]any{"features": features}})
}

func (l *lab) awaitCNINode() *cninode {
	l.t.Helper()
	var c *cninode
	testenv.EventuallyErr(l.t, "CNINode", func() error {
		if c = l.cninode(); c == nil {
			return errors.New("there is none")
		}
		return nil
	})
	return c
}

func (l *lab) capacity() string {
	l.t.Helper()
	q, there := read[corev1.Node](l, nodesResource, "", l.name).Status.Capacity[podENIKey]
	if !there {
		return ""
	}
	return q.String()
}

func (l *lab) awaitTrunk() fakeaws.ENI {
	l.t.Helper()
	testenv.EventuallyErr(l.t, "capacity", func() error {
		if l.capacity() == "" {
			return errors.New("not advertised")
		}
		return nil
	})
	e, there := l.trunk()
	if !there {
		l.t.Fatal("capacity without a trunk")
	}
	return e
}

func (l *lab) trunk() (fakeaws.ENI, bool) {
	for _, e := range l.world.ENIsOf(l.instance.ID) {
		if e.Type == "trunk" {
			return e, true
		}
	}
	return fakeaws.ENI{}, false
}

// policy creates a SecurityGroupPolicy for pods labelled app=NAME, and its group.
func (l *lab) policy(app string) (group string) {
	l.t.Helper()
	group = l.world.AddSecurityGroup(l.vpc, app)
	l.create(policiesResource, "SecurityGroupPolicy", app, map[string]any{
		"podSelector":    map[string]any{"matchLabels": map[string]any{"app": app}},
		"securityGroups": map[string]any{"groupIds": []any{group}},
	})
	return group
}

// pod creates a bound pod that requests a branch ENI, in the form the webhook leaves it.
func (l *lab) pod(name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	l.t.Helper()
	return l.api.CreatePod(l.t, l.name, name, l.name, append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{podENIKey: resource.MustParse("1")}
	}}, edit...)...)
}

func (l *lab) annotationOf(pod string) string {
	l.t.Helper()
	if p := read[corev1.Pod](l, podsResource, l.name, pod); p != nil {
		return p.Annotations[podENIKey]
	}
	return ""
}

// awaitBranches waits for a pod's annotation.
func (l *lab) awaitBranches(pod string) (text string, branches []branch) {
	l.t.Helper()
	testenv.EventuallyErr(l.t, "annotation of "+pod, func() error {
		if text = l.annotationOf(pod); text == "" {
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
	list, err := l.rcAPI().of(eventsResource, namespace).List(l.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name})
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
