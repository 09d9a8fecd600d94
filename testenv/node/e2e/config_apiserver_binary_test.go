package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// apiServer serves a cordoned Node to the daemon, inside the node, and records each request's
// path, user agent and token.
type apiServer struct {
	url  string
	mu   sync.Mutex
	seen map[string]bool // guarded by mu
}

func (l *lab) apiServer(n *node.Node) *apiServer {
	l.t.Helper()
	listener, err := n.NS.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	s := &apiServer{url: "http://" + listener.Addr().String(), seen: map[string]bool{}}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen[r.URL.Path+" "+r.UserAgent()+" "+r.Header.Get("Authorization")] = true
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/version":
			fmt.Fprint(w, `{"major":"1","minor":"35","gitVersion":"v1.35.4"}`)
		case "/api/v1/nodes":
			follow(w, r, "NodeList", `{"metadata":{"name":"worker-7","resourceVersion":"1"},
				"spec":{"taints":[{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule"}]},"status":{"capacity":{"pods":"29"}}}`)
		case "/api/v1/pods":
			follow(w, r, "PodList", "")
		default:
			http.NotFound(w, r)
		}
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }() // ends on Close
	l.t.Cleanup(func() { _ = server.Close(); <-ended })
	return s
}

// follow answers a list of at most one object, and a watch without events.
func follow(w http.ResponseWriter, r *http.Request, kind, item string) {
	if r.URL.Query().Get("watch") != "" {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	fmt.Fprintf(w, `{"apiVersion":"v1","kind":%q,"metadata":{"resourceVersion":"1"},"items":[%s]}`, kind, item)
}

func (s *apiServer) saw(request string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[request]
}

// TestConfig_APIServer gives a daemon an API server where its Node is cordoned: the
// pool does not change, unless AWS_MANAGE_ENIS_NON_SCHEDULABLE is set.
func TestConfig_APIServer(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	l.settled(n)
	api := l.apiServer(n)
	kubeconfig := filepath.Join(n.Dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: from-the-file}}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"KUBECONFIG": kubeconfig, "CLUSTER_ENDPOINT": api.url, "MY_NODE_NAME": "worker-7", "VPC_CNI_VERSION": "v9.8.7",
		"IP_COOLDOWN_PERIOD": "0", // so that the second daemon finds a full pool
	}
	restart := func() {
		t.Helper()
		l.kill(n, syscall.SIGKILL)
		l.start(n, env)
		testenv.Eventually(l.t, "the daemon knows that its node is cordoned", func() bool {
			var s introspect.Summary
			l.get(n, introspect.PathSummary, &s)
			return s.Node == "worker-7" && s.Cordoned != nil && *s.Cordoned
		})
	}
	restart()
	const request = "/api/v1/nodes aws-k8s-agent-v9.8.7 Bearer from-the-file"
	if !api.saw(request) {
		t.Errorf("the API server was not asked %q, but %v", request, api.seen)
	}
	enisWhenSettled := func() int { l.settled(n); return len(l.world.ENIsOf(n.InstanceID)) }
	pods := l.mustAdd(n, "p", 5, 4) // WARM_ENI_TARGET now wants a second ENI
	if enis := enisWhenSettled(); enis != 1 {
		t.Errorf("the pool of a cordoned node has grown to %d ENIs", enis)
	}
	l.del(n, pods, 4)

	env["AWS_MANAGE_ENIS_NON_SCHEDULABLE"] = "true"
	restart()
	if enis := enisWhenSettled(); enis != 1 {
		t.Fatalf("%d ENIs before the pool lacks any", enis)
	}
	l.mustAdd(n, "q", 5, 4)
	testenv.Eventually(l.t, "a second ENI", func() bool { return len(l.world.ENIsOf(n.InstanceID)) == 2 })
}
