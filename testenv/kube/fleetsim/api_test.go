package fleetsim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"cnictl/deploy"
	"cnictl/testenv"
)

func clientset(t *testing.T, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cs, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cs.RESTClient().(*rest.RESTClient).Client.CloseIdleConnections)
	return cs
}

func configOf(t *testing.T, kubeconfig []byte) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestList_Pages: pages of 500 contain each node once, and the number of remaining items.
func TestList_Pages(t *testing.T) {
	t.Parallel()
	cs := clientset(t, New(t, Options{Nodes: 1201}).RESTConfig())
	seen := map[string]bool{}
	opts := metav1.ListOptions{Limit: 500}
	var left []int64
	for {
		page, err := cs.CoreV1().Nodes().List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range page.Items {
			if seen[n.Name] {
				t.Errorf("%s is there twice", n.Name)
			}
			seen[n.Name] = true
		}
		if page.RemainingItemCount != nil {
			left = append(left, *page.RemainingItemCount)
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			break
		}
	}
	if len(seen) != 1201 || fmt.Sprint(left) != "[701 201]" {
		t.Errorf("%d nodes, left %v", len(seen), left)
	}
	opts.Continue = "?"
	if _, err := cs.CoreV1().Nodes().List(t.Context(), opts); !apierrors.IsBadRequest(err) {
		t.Errorf("an invalid token: %v", err)
	}
}

func TestList_Selectors(t *testing.T) {
	t.Parallel()
	s := New(t, Options{Nodes: 60, Seed: 1})
	cs := clientset(t, s.RESTConfig())
	nodes, err := cs.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "topology.kubernetes.io/zone=eu-west-1b,kubernetes.io/os=linux"})
	if err != nil || len(nodes.Items) != 20 {
		t.Errorf("%d nodes of a zone, %v", len(nodes.Items), err)
	}
	name := s.Nodes()[3].Name
	pods, err := cs.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil || len(pods.Items) < 2 {
		t.Fatalf("%d pods of a node, %v", len(pods.Items), err)
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName != name {
			t.Errorf("%s is on %s", p.Name, p.Spec.NodeName)
		}
	}
	pods, err = cs.CoreV1().Pods(systemNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "k8s-app=aws-node"})
	if err != nil || len(pods.Items) != 60 {
		t.Errorf("%d aws-node pods, %v", len(pods.Items), err)
	}
	if _, err = cs.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red"}); !apierrors.IsBadRequest(err) {
		t.Errorf("an unknown field: %v", err)
	}
	if _, err = cs.CoreV1().Nodes().Get(t.Context(), "unknown", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an unknown node: %v", err)
	}
}

// TestUsers_Roles: a user with roles may do what they grant, where they are bound, and nothing
// else.
func TestUsers_Roles(t *testing.T) {
	t.Parallel()
	s := New(t, Options{Nodes: 1, Seed: 1, Churn: -1})
	roles, err := deploy.RBAC("cnictl")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := s.KubeconfigWith("operator", roles...)
	if err != nil {
		t.Fatal(err)
	}
	cs := clientset(t, configOf(t, kubeconfig))
	if _, err := cs.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list nodes: %v", err)
	}
	if _, err := cs.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list namespaces: %v", err)
	}
	for _, tt := range []struct {
		a    authorizationv1.ResourceAttributes
		want bool
	}{
		{authorizationv1.ResourceAttributes{Namespace: systemNamespace, Verb: "create", Resource: "pods", Subresource: "portforward"}, true},
		{authorizationv1.ResourceAttributes{Namespace: "default", Verb: "create", Resource: "pods", Subresource: "portforward"}, false},
		{authorizationv1.ResourceAttributes{Namespace: systemNamespace, Verb: "create", Resource: "pods", Subresource: "exec"}, false},
		{authorizationv1.ResourceAttributes{Namespace: systemNamespace, Verb: "get", Resource: "configmaps", Name: "amazon-vpc-cni"}, true},
		{authorizationv1.ResourceAttributes{Namespace: systemNamespace, Verb: "get", Resource: "configmaps", Name: "another"}, false},
		{authorizationv1.ResourceAttributes{Verb: "watch", Group: "vpcresources.k8s.aws", Resource: "cninodes"}, true},
		{authorizationv1.ResourceAttributes{Verb: "watch", Resource: "cninodes"}, false},
	} {
		review, err := cs.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &tt.a}}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed != tt.want {
			t.Errorf("%+v: %t, %v", tt.a, review.Status.Allowed, err)
		}
	}
}

// TestNegotiation: a client that accepts only protobuf is refused.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	s := New(t, Options{Nodes: 2})
	hc, err := rest.HTTPClientFor(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer hc.CloseIdleConnections()
	for accept, want := range map[string]int{
		"application/vnd.kubernetes.protobuf": http.StatusNotAcceptable, "application/vnd.kubernetes.protobuf,application/json": http.StatusOK,
		"application/json;as=Table;v=v1;g=meta.k8s.io": http.StatusOK,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/api/v1/nodes", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || (want == http.StatusOK && !json.Valid(body)) {
			t.Errorf("%s: %s, %.100s", accept, resp.Status, body)
		}
	}
}

// TestInformers: client-go's informers, which list as a stream, see every node and its
// changes.
func TestInformers(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := New(t, Options{Nodes: 300, Seed: 1, Shares: map[Trait]float64{Flapping: 0.1}, Churn: time.Second, Now: c.Now})
	factory := informers.NewSharedInformerFactory(clientset(t, s.RESTConfig()), 0)
	nodes, pods := factory.Core().V1().Nodes().Informer(), factory.Core().V1().Pods().Informer()
	flapped, born := make(chan string, 1000), make(chan string, 100_000)
	_, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, o any) { flapped <- o.(*corev1.Node).Name }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pods.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{AddFunc: func(o any, initial bool) {
		if !initial {
			born <- o.(*corev1.Pod).Name
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced, pods.HasSynced) {
		t.Fatal("the informers do not sync")
	}
	if n := len(nodes.GetStore().List()); n != 300 {
		t.Errorf("%d nodes", n)
	}
	if n := len(pods.GetStore().List()); n < 600 {
		t.Errorf("%d pods", n)
	}
	for range 3 {
		c.add(flapDown)
	}
	for _, want := range []chan string{flapped, born} {
		testenv.Receive(t, "a change", want)
	}
}

// TestWatch_TooOld: a watch from a version that is no longer stored gets 410, as the answer or
// as an event, and so does a list with an old token.
func TestWatch_TooOld(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := New(t, Options{Nodes: 40, Churn: time.Second, Now: c.Now})
	cs := clientset(t, s.RESTConfig())
	page, err := cs.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for s.hub.oldest() <= firstVersion {
		c.add(20 * time.Minute)
		for _, n := range s.nodes {
			n.withWorld(func(*world) {})
		}
	}
	if _, err := cs.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: page.ResourceVersion}); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("watch: %v", err)
	}
	if _, err := cs.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 10, Continue: page.Continue}); !apierrors.IsResourceExpired(err) {
		t.Errorf("list: %v", err)
	}
	events, err := cs.CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedCreatePodSandBox"})
	if err != nil || len(events.Items) == 0 || !strings.Contains(events.Items[0].Message, "failed to assign an IP address to container") {
		t.Errorf("events: %d, %v", len(events.Items), err)
	}
}
