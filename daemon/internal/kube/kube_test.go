package kube

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnictl/testenv"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nodeJSON looks like a real API server's answer, with fields that we do not use.
const nodeJSON = `{
  "kind": "Node", "apiVersion": "v1",
  "metadata": {"name": "x", "uid": "5a0c", "resourceVersion": "7",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {"topology.kubernetes.io/zone": "us-west-2a"},
    "annotations": {"k8s.amazonaws.com/eniConfig": "a"},
    "managedFields": [{"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {}}]},
  "spec": {"providerID": "aws:///us-west-2a/i-0abc"%s},
  "status": {"capacity": {"cpu": "4", "ephemeral-storage": "83873772Ki", "memory": "15896984Ki", "pods": "%s"},
    "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "KubeletReady", "message": "ok"}]}
}`

const notFoundJSON = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"nodes \"x\" not found","reason":"NotFound","details":{"name":"x","kind":"nodes"},"code":404}`

// apiServer serves over TLS and requires the kubeconfig's token.
func apiServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func kubeconfig(t *testing.T, s *httptest.Server, address string) string {
	t.Helper()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	path := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: secret}}]
`, address, ca)
	for name, data := range map[string][]byte{ca: cert, path: []byte(text)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func newClient(t *testing.T, s *httptest.Server) *Client {
	t.Helper()
	c, err := New(Options{NodeName: "x", Kubeconfig: kubeconfig(t, s, s.URL), UserAgent: "aws-k8s-agent-v1"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServerVersion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code       int
		body, want string
		err        string
	}{
		"version":  {200, `{"major":"1","minor":"35","gitVersion":"v1.35.4","platform":"linux/amd64"}`, "v1.35.4", ""},
		"no field": {200, `{}`, "", "no gitVersion"},
		"no JSON":  {200, `<html>`, "", "get /version"},
		"refused":  {503, `busy`, "", "get /version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/version" || r.Method != http.MethodGet || r.UserAgent() != "aws-k8s-agent-v1" {
					t.Errorf("unexpected %s %s by %q", r.Method, r.URL, r.UserAgent())
				}
				w.WriteHeader(tc.code)
				fmt.Fprint(w, tc.body)
			})
			got, err := newClient(t, s).ServerVersion(t.Context())
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v; want %q, %q", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestNode(t *testing.T) {
	t.Parallel()
	meta := Node{
		Labels:      map[string]string{"topology.kubernetes.io/zone": "us-west-2a"},
		Annotations: map[string]string{"k8s.amazonaws.com/eniConfig": "a"},
	}
	with := func(pods int, cordoned bool) Node { n := meta; n.MaxPods, n.Unschedulable = pods, cordoned; return n }
	for name, tc := range map[string]struct {
		body string
		want Node
		err  string
	}{
		"ordinary":     {fmt.Sprintf(nodeJSON, "", "58"), with(58, false), ""},
		"cordoned":     {fmt.Sprintf(nodeJSON, `, "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]`, "58"), with(58, true), ""},
		"flag only":    {fmt.Sprintf(nodeJSON, `, "unschedulable": true`, "58"), with(58, true), ""},
		"other taint":  {fmt.Sprintf(nodeJSON, `, "taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]`, "58"), with(58, false), ""},
		"with suffix":  {fmt.Sprintf(nodeJSON, "", "1k"), with(1000, false), ""},
		"negative":     {fmt.Sprintf(nodeJSON, "", "-1"), Node{}, "status.capacity[pods]"},
		"no capacity":  {`{"kind":"Node","apiVersion":"v1","metadata":{"name":"x"}}`, Node{}, ""},
		"not JSON":     {`{`, Node{}, "get node x"},
		"another one":  {`{"kind":"Node","apiVersion":"v1","metadata":{"name":"y"}}`, Node{}, `the answer is about "y"`},
		"empty object": {`{}`, Node{}, "the answer is about"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/nodes/x" || r.URL.RawQuery != "" {
					t.Errorf("unexpected request %s", r.URL)
				}
				fmt.Fprint(w, tc.body)
			})
			got, err := newClient(t, s).Node(t.Context())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("node (-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestNode_NotFound(t *testing.T) {
	t.Parallel()
	s := apiServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, notFoundJSON)
	})
	if _, err := newClient(t, s).Node(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
}

func TestNode_WithoutName(t *testing.T) {
	t.Parallel()
	s := apiServer(t, func(http.ResponseWriter, *http.Request) { t.Error("asked without a name") })
	c, err := New(Options{Kubeconfig: kubeconfig(t, s, s.URL)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Node(t.Context()); err == nil || !strings.Contains(err.Error(), "MY_NODE_NAME") {
		t.Errorf("error %v, want the variable's name", err)
	}
}

// TestTimeLimit: a request to a server that never answers ends at the call's own limit or at
// the caller's deadline.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	s := apiServer(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // returning would send an answer, which could overtake the end
	})
	c := newClient(t, s)
	own := newClient(t, s)
	own.limits.get, own.limits.version = 20*time.Millisecond, 20*time.Millisecond
	calls := map[string]func(context.Context, *Client) error{
		"version": func(ctx context.Context, c *Client) error { _, err := c.ServerVersion(ctx); return err },
		"node":    func(ctx context.Context, c *Client) error { _, err := c.Node(ctx); return err },
	}
	for name, call := range calls {
		t.Run(name+", the caller's", func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithDeadline(t.Context(), testenv.Soon())
			defer cancel()
			if err := call(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want the deadline", err)
			}
		})
		t.Run(name+", its own", func(t *testing.T) {
			t.Parallel()
			if err := call(t.Context(), own); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want the deadline", err)
			}
		})
	}
	if c.limits.version != 5*time.Second || c.limits.get != 3*time.Second {
		t.Errorf("limits %v and %v, want 5s and 3s", c.limits.version, c.limits.get)
	}
}

func TestEndpointReplacesTheServer(t *testing.T) {
	t.Parallel()
	s := apiServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"gitVersion":"v1.2.3"}`) })
	c, err := New(Options{Kubeconfig: kubeconfig(t, s, "https://127.0.0.1:1"), Endpoint: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := c.ServerVersion(t.Context()); v != "v1.2.3" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
}

func TestCallsAreNotRateLimited(t *testing.T) {
	t.Parallel()
	s := apiServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"gitVersion":"v1.2.3"}`) })
	c := newClient(t, s)
	if c.rest.GetRateLimiter() != nil {
		t.Errorf("rate limiter %v, want none", c.rest.GetRateLimiter())
	}
}

func TestNew_Errors(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none")
	if _, err := New(Options{Kubeconfig: missing}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("missing kubeconfig: %v, want its path", err)
	}
}

// TestNew_OutsideACluster depends on the environment, so it is not parallel.
func TestNew_OutsideACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := New(Options{}); !errors.Is(err, ErrNotConfigured) {
		t.Errorf("error %v, want %v", err, ErrNotConfigured)
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"", "{}", `{"gitVersion":"v1"}`, `{"gitVersion":1}`, "null"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if v, err := parseVersion(body); (v == "") != (err != nil) {
			t.Errorf("%q: %q, %v", body, v, err)
		}
	})
}

// TestFailed_Forbidden: a missing rule is named, an admission policy names itself.
func TestFailed_Forbidden(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for text, rule := range map[string]bool{
		`User "u" cannot patch resource "pods"`:                                       true,
		"ValidatingAdmissionPolicy 'aws-node' with binding 'aws-node' denied request": false,
	} {
		err := new(Client).failed(apierrors.NewForbidden(pods, "p", errors.New(text)))
		if strings.Contains(err.Error(), "ClusterRole") != rule || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
