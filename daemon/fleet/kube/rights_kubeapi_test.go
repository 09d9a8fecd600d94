package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/tunnel"
	"cnictl/deploy"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

// grant binds the files of deploy/rbac to a new user, minus one right if given (such as
// "watch nodes" or "create pods/portforward"), and returns the user.
func grant(t *testing.T, s *kubeapi.Server, without string, files ...string) (user string) {
	t.Helper()
	user = strings.NewReplacer("/", "-", " ", "-", ".", "-").Replace(s.Name(t) + "-" + strings.Join(files, "-") + "-" + without + "-x")
	for _, file := range files {
		objects, err := deploy.RBAC(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			var role rbacv1.ClusterRole
			data, err := o.MarshalJSON()
			if err == nil {
				err = json.Unmarshal(data, &role)
			}
			if err != nil {
				t.Fatal(err)
			}
			var rules []any
			for _, r := range role.Rules {
				for _, group := range r.APIGroups {
					for _, resource := range r.Resources {
						for _, verb := range r.Verbs {
							if verb+" "+resource == without {
								continue
							}
							rule := map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{verb}}
							if len(r.ResourceNames) > 0 {
								rule["resourceNames"] = []any{r.ResourceNames[0]}
							}
							rules = append(rules, rule)
						}
					}
				}
			}
			name := user + "-" + file
			bind(t, s, o.GetKind(), o.GetNamespace(), name, user, rules)
		}
	}
	return user
}

// bind creates a role and binds it to a user.
func bind(t *testing.T, s *kubeapi.Server, kind, namespace, name, user string, rules []any) {
	t.Helper()
	install(t, s, kind, namespace, name, map[string]any{"rules": rules})
	install(t, s, kind+"Binding", namespace, name, map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
	})
}

func install(t *testing.T, s *kubeapi.Server, kind, namespace, name string, fields map[string]any) {
	t.Helper()
	o := &unstructured.Unstructured{Object: fields}
	o.SetAPIVersion("rbac.authorization.k8s.io/v1")
	o.SetKind(kind)
	o.SetName(name)
	all := s.Objects().Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: strings.ToLower(kind) + "s"})
	var err error
	if namespace == "" {
		_, err = all.Create(t.Context(), o, metav1.CreateOptions{})
	} else {
		o.SetNamespace(namespace)
		_, err = all.Namespace(namespace).Create(t.Context(), o, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// as connects as a user, once the API server applies everything that was granted.
func as(t *testing.T, s *kubeapi.Server, user string, missing ...string) *Cluster {
	t.Helper()
	cfg := s.Admin()
	cfg.Impersonate.UserName = user
	c := connect(t, s, cfg)
	testenv.EventuallyErr(t, "the rights of "+user, func() error {
		access, err := c.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var lacks []string
		for _, r := range access.Rules {
			if what, _, _ := strings.Cut(r.String(), " in "); !r.Allowed {
				lacks = append(lacks, what)
			}
		}
		slices.Sort(lacks)
		lacks = slices.Compact(lacks) // the same right in one namespace and in all
		slices.Sort(missing)
		if !slices.Equal(lacks, missing) {
			return fmt.Errorf("lacks %q, want %q", lacks, missing)
		}
		return nil
	})
	return c
}

// uses are all operations on a cluster, with the rights that each needs. Those that need a
// kubelet fail here, but not for lack of a right.
var uses = []struct {
	name   string
	rights []string
	do     func(ctx context.Context, c *Cluster, node string) error
}{
	{"targets", []string{"list nodes", "list pods"}, func(ctx context.Context, c *Cluster, _ string) error {
		_, err := c.Targets(ctx)
		return err
	}},
	{"watch", []string{"watch nodes", "watch pods", "list nodes", "list pods"}, func(ctx context.Context, c *Cluster, _ string) error {
		return watchOnce(ctx, func(ctx context.Context, seen func()) error {
			return c.Watch(ctx, func(fleet.Target) { seen() }, func() {}, func(string) {}, nil)
		})
	}},
	{"pods of a node", []string{"list pods"}, func(ctx context.Context, c *Cluster, node string) error {
		_, err := c.Pods(ctx, node)
		return err
	}},
	{"a pod", []string{"get pods"}, func(ctx context.Context, c *Cluster, node string) error {
		_, _, err := c.Pod(ctx, DefaultNamespace, "aws-node-"+node)
		return err
	}},
	{"events", []string{"list events"}, func(ctx context.Context, c *Cluster, _ string) error {
		_, err := c.Events(ctx, EventQuery{})
		return err
	}},
	{"new events", []string{"watch events", "list events"}, func(ctx context.Context, c *Cluster, node string) error {
		return watchOnce(ctx, func(ctx context.Context, seen func()) error {
			return c.WatchEvents(ctx, EventQuery{}, func(Event) { seen() }, nil)
		})
	}},
	{"a CNINode", []string{"get cninodes"}, func(ctx context.Context, c *Cluster, node string) error {
		_, _, err := c.CNINode(ctx, node)
		return err
	}},
	{"log", []string{"get pods/log"}, func(ctx context.Context, c *Cluster, node string) error {
		log, err := c.DaemonLogs(ctx, tunnel.Pod{Namespace: DefaultNamespace, Name: "aws-node-" + node}, LogOptions{})
		if err == nil {
			log.Close()
		}
		return err
	}},
	{"stream", []string{"create pods/portforward"}, func(ctx context.Context, c *Cluster, node string) error {
		return drop(c.Tunnels().Dial(ctx, tunnel.Pod{Namespace: DefaultNamespace, Name: "aws-node-" + node}, DefaultPort))
	}},
	{"program", []string{"create pods/exec"}, func(ctx context.Context, c *Cluster, node string) error {
		return drop(c.Tunnels().Exec(ctx, tunnel.Pod{Namespace: DefaultNamespace, Name: "aws-node-" + node}, DefaultContainer, []string{"x"}))
	}},
	{"proxy", []string{"get pods/proxy"}, func(ctx context.Context, c *Cluster, node string) error {
		conn, err := c.Tunnels().Proxy(ctx, tunnel.Pod{Namespace: DefaultNamespace, Name: "aws-node-" + node}, DefaultPort)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: node\r\n\r\n"); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return err
	}},
}

// drop closes what was opened nevertheless.
func drop(c io.Closer, err error) error {
	if err == nil {
		c.Close()
	}
	return err
}

// lacking is the key of a context in which a right is missing.
type lacking struct{}

// watchOnce watches until something is seen and a moment more, so that the need for another right
// shows. Where one is missing, it watches until that shows.
func watchOnce(ctx context.Context, watch func(ctx context.Context, seen func()) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := watch(ctx, func() {
		if ctx.Value(lacking{}) != true {
			moment, end := context.WithDeadline(ctx, testenv.Soon())
			context.AfterFunc(moment, func() { cancel(); end() })
		}
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// TestRights: with the roles of deploy/rbac everything works. Without one right, only the
// operations that need it fail, and their errors name it.
func TestRights(t *testing.T) {
	s := kubeapi.Shared(t)
	node := makeNode(t, s, "node")
	pod := makeDaemon(t, s, node.Name)
	makeEvent(t, s, pod, nil)
	all := []string{"cnictl", "cnictl-exec", "cnictl-proxy"}
	rights := []string{"", "get pods/portforward"} // SPDY remains without the second
	for _, u := range uses {
		for _, r := range u.rights {
			if !slices.Contains(rights, r) {
				rights = append(rights, r)
			}
		}
	}
	for _, without := range rights {
		t.Run("without "+without, func(t *testing.T) {
			var missing []string
			if without != "" {
				missing = []string{strings.Replace(without, "cninodes", "cninodes.vpcresources.k8s.aws", 1)}
			}
			c := as(t, s, grant(t, s, without, all...), missing...)
			c.cfg.NodeSelector, c.cfg.Selector = "test="+node.Labels["test"], "k8s-app="+node.Labels["test"] // only this test's objects
			for _, u := range uses {
				want := slices.Contains(u.rights, without)
				err := u.do(context.WithValue(t.Context(), lacking{}, want), c, node.Name)
				var e *Error
				forbidden := errors.As(err, &e) && e.Reason == introspect.ReasonForbidden
				if forbidden != want {
					t.Errorf("%s: %v", u.name, err)
					continue
				}
				if forbidden && e.Verb+" "+e.Resource != without {
					t.Errorf("%s: lacks %q by its error", u.name, e.Verb+" "+e.Resource)
				}
			}
		})
	}
}

// TestRights_OneNamespace: a user who may see pods only in the daemon's namespace can read
// nodes and their daemons, and other requests fail with an error that names the missing
// right.
func TestRights_OneNamespace(t *testing.T) {
	s := kubeapi.Shared(t)
	node := makeNode(t, s, "node")
	makeDaemon(t, s, node.Name)
	user := s.Name(t) + "-x"
	roles := map[string]struct {
		kind, namespace string
		rules           []any
	}{
		"nodes":  {"ClusterRole", "", []any{rule("", []any{"nodes", "events"}, "list", "watch"), rule("vpcresources.k8s.aws", []any{"cninodes"}, "get")}},
		"daemon": {"Role", DefaultNamespace, []any{rule("", []any{"pods"}, "list", "watch"), rule("", []any{"pods/portforward"}, "get", "create"), rule("", []any{"pods/log"}, "get")}},
	}
	for name, r := range roles {
		bind(t, s, r.kind, r.namespace, user+"-"+name, user, r.rules)
	}
	c := as(t, s, user, "list pods", "get pods", "create pods/exec", "get pods/proxy")
	access, err := c.Check(t.Context())
	if err != nil || len(access.Missing()) != 0 {
		t.Errorf("missing %v, %v", access.Missing(), err)
	}
	c.cfg.NodeSelector, c.cfg.Selector = "test="+node.Labels["test"], "k8s-app="+node.Labels["test"]
	targets, err := c.Targets(t.Context())
	if err != nil || len(targets) != 1 || targets[0].Absent != nil {
		t.Errorf("targets %+v, %v", targets, err)
	}
	seen := func(ctx context.Context, seen func()) error {
		return c.Watch(ctx, func(fleet.Target) { seen() }, func() {}, func(string) {}, nil)
	}
	if err := watchOnce(t.Context(), seen); err != nil {
		t.Errorf("watch: %v", err)
	}
	var e *Error
	if _, err := c.Pods(t.Context(), node.Name); !errors.As(err, &e) || e.Reason != introspect.ReasonForbidden || e.Verb+" "+e.Resource != "list pods" {
		t.Errorf("the pods of a node: %v", err)
	}
}

func rule(group string, resources []any, verbs ...any) any {
	return map[string]any{"apiGroups": []any{group}, "resources": resources, "verbs": verbs}
}

// TestRights_NothingMore: the role grants nothing unexpected.
func TestRights_NothingMore(t *testing.T) {
	s := kubeapi.Shared(t)
	optional := []string{"create pods/exec", "get pods/proxy"}
	c := as(t, s, grant(t, s, "", "cnictl"), optional...)
	for _, r := range []Rule{
		{Verb: "get", Resource: "secrets"},
		{Verb: "list", Resource: "secrets", Namespace: DefaultNamespace},
		{Verb: "list", Resource: "configmaps", Namespace: DefaultNamespace},
		{Verb: "get", Resource: "nodes", Subresource: "proxy"},
		{Verb: "patch", Resource: "nodes"},
		{Verb: "delete", Resource: "pods", Namespace: DefaultNamespace},
		{Verb: "create", Resource: "pods", Namespace: DefaultNamespace},
		{Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: DefaultNamespace},
		{Verb: "create", Resource: "pods", Subresource: "portforward", Namespace: "default"},
		{Verb: "get", Resource: "pods", Subresource: "portforward"},
		{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "default"},
		{Verb: "create", Resource: "events"},
		{Verb: "patch", Group: "vpcresources.k8s.aws", Resource: "cninodes"},
		{Verb: "*", Group: "*", Resource: "*"},
	} {
		allowed, err := c.may(t.Context(), r)
		if err != nil || allowed {
			t.Errorf("%s: allowed %v, %v", r, allowed, err)
		}
	}
	if got := (Access{Rules: []Rule{{Verb: "list", Resource: "nodes"}, {Verb: "get", Resource: "pods", Optional: true}}}).Missing(); len(got) != 1 || got[0].String() != "list nodes" {
		t.Errorf("missing %v", got)
	}
}

var eventsResource = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// makeEvent makes an event about a pod, reported by the daemon; edit changes it.
func makeEvent(t *testing.T, s *kubeapi.Server, about *corev1.Pod, edit func(map[string]any)) string {
	t.Helper()
	o := map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata":       map[string]any{"generateName": "e-", "namespace": about.Namespace},
		"involvedObject": map[string]any{"kind": "Pod", "namespace": about.Namespace, "name": about.Name},
		"reason":         "NoAddress", "message": "m", "type": "Warning", "count": int64(3),
		"source":        map[string]any{"component": "aws-node", "host": about.Spec.NodeName},
		"lastTimestamp": "2026-01-02T03:04:05Z",
	}
	if edit != nil {
		edit(o)
	}
	made, err := s.Objects().Resource(eventsResource).Namespace(about.Namespace).Create(t.Context(), &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(made.GetUID())
}

// TestEvents: lists the CNI's events in order, and watches for new ones.
func TestEvents(t *testing.T) {
	s := kubeapi.Shared(t)
	namespace := s.Name(t)
	s.CreateNamespace(t, namespace)
	app := s.CreatePod(t, namespace, "app", "node-1")
	from := func(component, reason, at string) string {
		return makeEvent(t, s, app, func(o map[string]any) {
			o["source"], o["reason"], o["lastTimestamp"] = map[string]any{"component": component, "host": "node-1"}, reason, at
		})
	}
	second := from("kubelet", sandboxFailed, "2026-01-02T03:04:07Z")
	from("kubelet", "Pulled", "2026-01-02T03:04:08Z")
	first := from("vpc-resource-controller", "BranchAllocationFailed", "2026-01-02T03:04:06Z")
	c := connect(t, s, s.Admin())
	list, err := c.Events(t.Context(), EventQuery{Namespace: namespace})
	if err != nil || len(list) != 2 || list[0].UID != first || list[1].UID != second {
		t.Fatalf("%+v, %v", list, err)
	}
	if e := list[1]; e.Count != 3 || e.Node != "node-1" || e.Object != namespace+"/app" || e.Kind != "Pod" || e.Source != "kubelet" || e.Type != "Warning" || e.At.Format(time.RFC3339) != "2026-01-02T03:04:07Z" {
		t.Errorf("%+v", e)
	}
	if list, err := c.Events(t.Context(), EventQuery{Namespace: namespace, Node: "another"}); err != nil || len(list) != 0 {
		t.Errorf("of another node: %+v, %v", list, err)
	}

	if list, err := c.NodeEvents(t.Context(), "node-1", time.Time{}); err != nil || !slices.ContainsFunc(list, func(e Event) bool { return e.UID == second }) {
		t.Errorf("of its node: %+v, %v", list, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan Event, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- c.WatchEvents(ctx, EventQuery{Namespace: namespace}, func(e Event) { events <- e }, nil)
	}()
	var got []string
	next := func() {
		t.Helper()
		select {
		case e := <-events:
			got = append(got, e.UID)
		case err := <-ended:
			t.Fatalf("ended with %v after %q", err, got)
		}
	}
	next()
	next()
	third := from("aws-node", "NoAddress", "2026-01-02T03:04:09Z")
	next()
	if want := []string{first, second, third}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if text := fmt.Sprint(Rule{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "a"}); text != "get pods/log in namespace a" {
		t.Error(text)
	}
}
