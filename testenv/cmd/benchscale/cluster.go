package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"cnictl/testenv/kubeapi"
)

// apiServer is the Kubernetes API server that the daemons watch, as in upstream's
// measurements.
type apiServer struct {
	server *kubeapi.Server
	core   *rest.RESTClient // the administrator's, for core/v1
}

func startAPI(ctx context.Context, dir string) (_ *apiServer, err error) {
	own := filepath.Join(dir, "api")
	if err := os.Mkdir(own, 0o700); err != nil {
		return nil, err
	}
	a := &apiServer{}
	if a.server, err = kubeapi.Open(ctx, own, kubeapi.Options{}); err != nil {
		return nil, err
	}
	if a.core, err = coreClient(a.server.Admin()); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *apiServer) close() error { return a.server.Close() }

// coreClient speaks protobuf, because most of the bench's own work is filling a cluster.
func coreClient(c *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c.APIPath, c.GroupVersion = "/api", &corev1.SchemeGroupVersion
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType = runtime.ContentTypeProtobuf
	return rest.RESTClientFor(c)
}

func (a *apiServer) create(ctx context.Context, resource, namespace string, o runtime.Object) error {
	r := a.core.Post().Resource(resource).Body(o)
	if namespace != "" {
		r = r.Namespace(namespace)
	}
	return r.Do(ctx).Error()
}

func (a *apiServer) namespace(ctx context.Context, name string) error {
	return a.create(ctx, "namespaces", "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func (a *apiServer) node(ctx context.Context, name string, maxPods int64) error {
	capacity := corev1.ResourceList{
		corev1.ResourcePods: *resource.NewQuantity(maxPods, resource.DecimalSI), corev1.ResourceCPU: resource.MustParse("16"),
	}
	return a.create(ctx, "nodes", "", &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	})
}

// pod creates a pod bound to a node.
func (a *apiServer) pod(ctx context.Context, namespace, name, node string) error {
	return a.create(ctx, "pods", namespace, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "bench"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "registry.invalid/app:1"}}},
	})
}

// sideBySide is how many objects are written in parallel.
const sideBySide = 16

// each calls f for 0 to n-1 in parallel, until one fails.
func each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

// Size of a big cluster that includes the daemon's node.
const (
	otherNodes = 5000
	otherPods  = 20000
)

// fill creates a big cluster.
func (s *session) fill(ctx context.Context) (nodes, pods int, err error) {
	nodes, pods = s.part(otherNodes), s.part(otherPods)
	if err := s.api.namespace(ctx, "elsewhere"); err != nil {
		return 0, 0, err
	}
	name := func(i int) string { return fmt.Sprintf("other-%d", i) }
	if err := each(ctx, nodes, func(ctx context.Context, i int) error { return s.api.node(ctx, name(i), 110) }); err != nil {
		return 0, 0, err
	}
	s.say("  %d Nodes", nodes)
	err = each(ctx, pods, func(ctx context.Context, i int) error { return s.api.pod(ctx, "elsewhere", name(i), name(i%nodes)) })
	s.say("  %d pods", pods)
	return nodes, pods, err
}

// join creates a Node object for a site's node and returns the settings with which its daemon
// reaches the API server.
func (s *session) join(ctx context.Context, t *site, maxPods int64) (map[string]string, error) {
	if err := s.api.node(ctx, t.node.Name, maxPods); err != nil {
		return nil, err
	}
	l, err := t.node.NS.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("listen in the node: a %T", l)
	}
	proxy, stop := s.api.server.Forward(tcp)
	t.calls = append(t.calls, stop)
	path := filepath.Join(t.dir, "kubeconfig")
	if err := s.api.server.WriteKubeconfig(ctx, path, "aws-node", proxy.Addr()); err != nil {
		return nil, err
	}
	return map[string]string{"KUBECONFIG": path, "MY_NODE_NAME": t.node.Name}, nil
}
