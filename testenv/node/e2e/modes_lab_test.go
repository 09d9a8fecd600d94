package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"cnictl/daemon/api/cniwire"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/node"
)

// cluster is a lab with a Kubernetes API server: the real one, which nodes reach
// through a proxy that can misbehave.
type cluster struct {
	*lab
	api       *kubeapi.Server
	namespace string
}

func newCluster(t *testing.T, o fakeaws.Options) *cluster {
	t.Helper()
	c := &cluster{lab: newLab(t, o), api: kubeapi.Shared(t)}
	c.namespace = c.api.Name(t)
	c.api.CreateNamespace(t, c.namespace)
	return c
}

// member is a node with its Node object.
type member struct {
	*node.Node
	c     *cluster
	name  string // of the Node
	proxy *kubeapi.Proxy
	pods  int // bound by addMore
}

// join boots a node's instance and creates its Node object. No daemon runs yet.
func (c *cluster) join(spec fakeaws.InstanceSpec, edit ...func(*corev1.Node)) *member {
	c.t.Helper()
	if spec.SubnetID == "" {
		spec.SubnetID = c.subnet.ID
	}
	i, err := c.world.AddInstance(spec)
	if err != nil {
		c.t.Fatal(err)
	}
	// A Node's name is also used as a label value, of at most 63 characters.
	m := &member{Node: c.node(i.ID), c: c, name: c.namespace + "-" + i.ID[len(i.ID)-6:]}
	provider := func(n *corev1.Node) { n.Spec.ProviderID = "aws:///" + i.AZ + "/" + i.ID }
	c.api.CreateNode(c.t, m.name, append([]func(*corev1.Node){provider}, edit...)...)
	listener, err := m.NS.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	m.proxy = c.api.Proxy(c.t, listener)
	return m
}

// env returns the variables that a daemon needs to reach the API server, and the given settings.
func (m *member) env(user string, more map[string]string) map[string]string {
	env := map[string]string{"MY_NODE_NAME": m.name, "KUBECONFIG": m.proxy.Kubeconfig(m.c.t, user)}
	maps.Copy(env, more)
	return env
}

// start starts the member's daemon with the service account aws-node.
func (m *member) start(more map[string]string) {
	m.c.t.Helper()
	m.c.lab.start(m.Node, m.env("aws-node", more))
}

// bind creates a pod that is bound to the member.
func (m *member) bind(name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	m.c.t.Helper()
	return m.c.api.CreatePod(m.c.t, m.c.namespace, name, m.name, edit...)
}

// request returns the ADD of a bound pod.
func (m *member) request(pod *corev1.Pod) *cniwire.AddRequest {
	return &cniwire.AddRequest{
		PodName: pod.Name, PodNamespace: pod.Namespace, PodUID: string(pod.UID), ContainerID: fmt.Sprintf("%064x", hashOf(string(pod.UID))),
		IfName: "eth0", NetworkName: "aws-cni", Netns: "/run/netns/x",
	}
}

func hashOf(s string) (h uint64) {
	for _, b := range []byte(s) {
		h = h*1099511628211 + uint64(b)
	}
	return h
}

// add asks the member's daemon for an address of a bound pod, as the plugin does.
func (m *member) add(pod *corev1.Pod) *cniwire.AddReply {
	m.c.t.Helper()
	return m.c.wireAdd(m.Node, m.request(pod))
}

// addMore adds one more pod, under a generated name.
func (m *member) addMore() *cniwire.AddReply {
	m.c.t.Helper()
	m.pods++
	return m.add(m.bind(fmt.Sprintf("more-%d", m.pods)))
}

func (m *member) del(pod *corev1.Pod) *cniwire.DelReply {
	m.c.t.Helper()
	return m.c.wireDel(m.Node, m.request(pod))
}

var (
	eniConfigs = schema.GroupVersionResource{Group: "crd.k8s.amazonaws.com", Version: "v1alpha1", Resource: "eniconfigs"}
	cniNodes   = schema.GroupVersionResource{Group: "vpcresources.k8s.aws", Version: "v1alpha1", Resource: "cninodes"}
)

// eniConfig creates or updates an ENIConfig. It is deleted when the test ends.
func (c *cluster) eniConfig(name, subnet string, groups ...string) {
	c.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "crd.k8s.amazonaws.com/v1alpha1", "kind": "ENIConfig", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"subnet": subnet, "securityGroups": anyOf(groups)},
	}}
	c.write(eniConfigs, o)
}

func anyOf(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

// write creates or updates an object of the cluster.
func (c *cluster) write(kind schema.GroupVersionResource, o *unstructured.Unstructured) {
	c.t.Helper()
	ctx, objects := c.t.Context(), c.objects(kind)
	have, err := objects.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err == nil {
		o.SetResourceVersion(have.GetResourceVersion())
		_, err = objects.Update(ctx, o, metav1.UpdateOptions{})
	} else {
		_, err = objects.Create(ctx, o, metav1.CreateOptions{})
		c.t.Cleanup(func() {
			_ = objects.Delete(context.WithoutCancel(ctx), o.GetName(), metav1.DeleteOptions{}) // the server may be gone
		})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) objects(kind schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return c.api.Objects().Resource(kind)
}
