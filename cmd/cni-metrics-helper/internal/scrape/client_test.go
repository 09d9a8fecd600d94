package scrape

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/kubeclient"
	"cnictl/testenv"
)

// kubeconfig writes a kubeconfig whose server is overridden.
func kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":"https://other.invalid","insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":"secret"}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// start serves h as the API server and returns a client whose token is "secret".
func start(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	c, err := New(Options{Kubeconfig: kubeconfig(t), Endpoint: s.URL, UserAgent: "helper/1", Timeout: testenv.Left(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.api.HTTP.CloseIdleConnections)
	return c
}

const podsPath = "/api/v1/namespaces/kube-system/pods"

func list(next string, names ...string) string {
	var items []string
	for _, n := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"uid":"uid-%s"}}`, n, n))
	}
	return fmt.Sprintf(`{"kind":"PartialObjectMetadataList","metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
}

func TestPods_Pages(t *testing.T) {
	t.Parallel()
	expired := false
	c := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != podsPath || r.FormValue("labelSelector") != "k8s-app=aws-node" || r.FormValue("limit") != "500" || r.Header.Get("Authorization") != "Bearer secret" || r.UserAgent() != "helper/1" {
			t.Errorf("asked %s of %s", r.URL, r.UserAgent())
		}
		switch {
		case r.FormValue("continue") == "":
			fmt.Fprint(w, list("more", "aws-node-a", "aws-node-b"))
		case !expired:
			expired = true
			http.Error(w, `{"message":"expired"}`, http.StatusGone)
		default:
			fmt.Fprint(w, list("", "aws-node-c"))
		}
	})
	got, err := c.Pods(t.Context())
	want := []Pod{{"aws-node-a", "uid-aws-node-a"}, {"aws-node-b", "uid-aws-node-b"}, {"aws-node-c", "uid-aws-node-c"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestPods_Refuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status     int
		body, want string
	}{
		"forbidden":        {403, `{"message":"pods is forbidden"}`, "pods is forbidden; bind the Role kube-system/cni-metrics-helper"},
		"broken":           {500, "oops", "500 Internal Server Error"},
		"redirected":       {302, "", "302 Found"},
		"no JSON":          {200, "hello", "read response"},
		"something else":   {200, `{"kind":"Status"}`, `the response is a "Status"`},
		"a path as a name": {200, list("", "../../secrets"), "a pod named"},
		"always expired":   {410, "", "expired between two pages"},
		"without end":      {200, `{"kind":"PartialObjectMetadataList","x":"` + strings.Repeat("x", 2*kubeclient.MaxObject) + `"}`, "read response"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(row.status)
				fmt.Fprint(w, row.body)
			})
			if _, err := c.Pods(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %.300v, want %q", err, row.want)
			}
		})
	}
	t.Run("pages without end", func(t *testing.T) {
		t.Parallel()
		page := list("more", slices.Repeat([]string{"aws-node"}, 10_000)...)
		c := start(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page) })
		if _, err := c.Pods(t.Context()); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("error %v", err)
		}
	})
}

// TestRead_SkipsHostilePods: no answer of one pod affects the reading of another.
func TestRead_SkipsHostilePods(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	defer trap.Close()
	hostile := map[string]struct {
		answer http.HandlerFunc
		want   Reason
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, trap.URL, http.StatusTemporaryRedirect)
		}, Malformed},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			for range maxAnswer / 1000 {
				if _, err := fmt.Fprintln(w, strings.Repeat("x", 1023)); err != nil {
					return
				}
			}
		}, TooLarge},
		"silent": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, TimedOut},
		"stalls": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, shown)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, TimedOut},
		"cut": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, shown); panic(http.ErrAbortHandler) }, Unreachable},
		"absent": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"message":"dial tcp: refused"}`, http.StatusServiceUnavailable)
		}, Unreachable},
		"gone":      {func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }, Unreachable},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"message":"no"}`, http.StatusForbidden) }, Refused},
		"rubbish":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "\x00\xff{{{") }, Malformed},
		"switching": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299); fmt.Fprint(w, shown) }, Unreachable},
	}
	good := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, shown) }
	mux := http.NewServeMux()
	var pods []Pod
	for name, h := range hostile {
		mux.HandleFunc(podsPath+"/"+name+":61678/proxy/metrics", h.answer)
		pods = append(pods, Pod{name, "uid-" + name})
	}
	for _, name := range []string{"good-1", "good-2"} {
		mux.HandleFunc(podsPath+"/"+name+":61678/proxy/metrics", good)
		pods = append(pods, Pod{name, "uid-" + name})
	}
	c := start(t, mux.ServeHTTP)
	slow := func(p Pod) bool { return hostile[p.Name].want == TimedOut }
	c.timeout = time.Minute
	readings, skipped := c.Read(t.Context(), slices.DeleteFunc(slices.Clone(pods), slow))
	c.timeout = 200 * time.Millisecond
	late, timedOut := c.Read(t.Context(), slices.DeleteFunc(pods, func(p Pod) bool { return !slow(p) }))
	maps.Copy(readings, late)
	skipped = append(skipped, timedOut...)
	if len(readings) != 2 || readings["uid-good-1"].Values["awscni_add_ip_req_count"] != 20 || readings["uid-good-2"].At.IsZero() {
		t.Errorf("readings %+v", readings)
	}
	got := map[string]Reason{}
	for _, s := range skipped {
		got[s.Pod] = s.Reason
	}
	for name, h := range hostile {
		if got[name] != h.want {
			t.Errorf("%s: skipped for %q, want %q", name, got[name], h.want)
		}
	}
	if followed.Load() {
		t.Error("a pod's redirect was followed: the token went there")
	}
}

// TestRead_Bounded: reads are limited in number at a time, and none starts after the poll ends.
func TestRead_Bounded(t *testing.T) {
	t.Parallel()
	var now, most, asked atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	full := make(chan struct{})
	c := start(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if asked.Add(1) == parallel {
			close(full)
		}
		<-r.Context().Done()
	})
	var pods []Pod
	for i := range 4 * parallel {
		pods = append(pods, Pod{fmt.Sprintf("p%d", i), fmt.Sprint(i)})
	}
	go func() {
		<-full
		cancel()
	}()
	readings, skipped := c.Read(ctx, pods)
	notReached := 0
	for _, s := range skipped {
		if s.Reason == NotReached {
			notReached++
		}
	}
	if len(readings) != 0 || len(skipped) != len(pods) || most.Load() != parallel || notReached != 3*parallel {
		t.Errorf("%d readings, %d skipped, %d not reached, %d at once", len(readings), len(skipped), notReached, most.Load())
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{Kubeconfig: filepath.Join(t.TempDir(), "none")}); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("error %v", err)
	}
	// In a pod of a cluster, this test would find a service account.
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "KUBECONFIG") {
			t.Errorf("error %v", err)
		}
	}
}

// TestNew_Endpoint: CLUSTER_ENDPOINT may be a URL, or a host and port as EKS gives it.
func TestNew_Endpoint(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, list("", "a")) }))
	t.Cleanup(s.Close)
	bare, err := New(Options{Kubeconfig: kubeconfig(t), Endpoint: s.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bare.api.HTTP.CloseIdleConnections)
	if pods, err := bare.Pods(t.Context()); err != nil || len(pods) != 1 {
		t.Errorf("%v, %v", pods, err)
	}
}
