package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
)

// served returns a cluster with an in-memory API server, for tests with a fake clock.
func served(t *testing.T, h http.HandlerFunc) *Cluster {
	t.Helper()
	p := fleettest.ServePipe(t, h)
	c, err := Connect(Config{Rest: &rest.Config{
		Host: "http://api",
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) },
	}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestTargets_SlowLine: the time limit applies to each page. All pages together may take
// longer.
func TestTargets_SlowLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pages := 0
		c := served(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/pods") {
				_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[]}`)
				return
			}
			<-time.After(within / 2) // on the fake clock
			next := ""
			if pages++; pages < 5 {
				next = "more"
			}
			_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"1","continue":%q},"items":[{"metadata":{"name":"n%d"}}]}`, next, pages)
		})
		targets, err := c.Targets(t.Context())
		if err != nil || len(targets) != 5 {
			t.Errorf("%d targets, %v", len(targets), err)
		}
	})
}

// TestTargets_EndlessList: reading a list whose pages never end fails.
func TestTargets_EndlessList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := served(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1","continue":"more"},"items":[]}`)
		})
		if _, err := c.Targets(t.Context()); reasonOf(err) != introspect.ReasonTooLarge {
			t.Errorf("error %v", err)
		}
	})
}

// TestWatch_EndsAtOnce: watches that a middlebox cuts as soon as they report anything are
// not restarted as fast as they end.
func TestWatch_EndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lists, watches atomic.Int32
		c := served(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") == "" {
				lists.Add(1)
				_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[]}`)
				return
			}
			watches.Add(1)
			_, _ = io.WriteString(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}`)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := c.Watch(ctx, func(fleet.Target) {}, func() {}, func(string) {}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		// Two kinds, whose pauses grow to between 15 and 30 s.
		if n := watches.Load(); n < 40 || n > 110 || lists.Load() != 2 {
			t.Errorf("%d watches and %d lists in ten minutes", n, lists.Load())
		}
	})
}

// TestWatch_ReportsErrors: a watch that keeps failing reports why, and when it works again.
func TestWatch_ReportsErrors(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		refusals int // of the node watch
		status   int
		want     []string // "" when it works
	}{
		"mended at once": {1, http.StatusInternalServerError, nil},
		"out of order":   {3, http.StatusInternalServerError, []string{"cannot watch nodes: the API server answered 500 to watch nodes: broken; retrying; check with: kubectl cluster-info", ""}},
		"expired for a moment": {2, http.StatusUnauthorized, []string{
			"cannot watch nodes: the API server does not accept the credentials (they may have expired); log in again (aws sso login, aws eks update-kubeconfig --name CLUSTER), then check with: kubectl auth whoami", "",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var watches atomic.Int32
				c := served(t, func(w http.ResponseWriter, r *http.Request) {
					nodes := strings.HasSuffix(r.URL.Path, "/nodes")
					switch n := 0; {
					case r.URL.Query().Get("watch") == "":
						_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[]}`)
						return
					case nodes:
						n = int(watches.Add(1))
						fallthrough
					default:
						// The first watch succeeds, then breaks.
						if nodes && n > 1 && n <= row.refusals+1 {
							w.WriteHeader(row.status)
							_, _ = io.WriteString(w, "broken")
							return
						}
						w.WriteHeader(http.StatusOK)
						w.(http.Flusher).Flush()
						if nodes && n == 1 {
							<-time.After(time.Minute)
							return
						}
						<-r.Context().Done()
					}
				})
				var got []string
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				err := c.Watch(ctx, func(fleet.Target) {}, func() {}, func(string) {}, func(err error) {
					text := ""
					if err != nil {
						text = err.Error()
					}
					if len(got) == 0 || got[len(got)-1] != text {
						got = append(got, text)
					}
				})
				if !errors.Is(err, context.DeadlineExceeded) || strings.Join(got, "|") != strings.Join(row.want, "|") {
					t.Errorf("got %q, want %q; %v", got, row.want, err)
				}
			})
		})
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"check with: kubectl cluster-info": errors.New("another"),
		"check with: kubectl auth can-i get pods --subresource=log -n a; the required roles are in deploy/rbac/cnictl.yaml": &Error{
			Reason: introspect.ReasonForbidden, Verb: "get", Resource: "pods/log", Namespace: "a",
		},
		"check with: kubectl auth can-i list nodes; the required roles are in deploy/rbac/cnictl.yaml": fmt.Errorf("wrapped: %w", &Error{
			Reason: introspect.ReasonForbidden, Verb: "list", Resource: "nodes",
		}),
		"choose fewer: --nodes NAME,NAME or --selector LABEL=VALUE": &Error{Reason: introspect.ReasonTooLarge},
	} {
		if got := Advice(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// TestRoster_PodOfTheSameNameElsewhere: the pod's previous node loses it.
func TestRoster_PodOfTheSameNameElsewhere(t *testing.T) {
	t.Parallel()
	c, err := Connect(Config{Rest: &rest.Config{Host: "http://api"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	r := newRoster(c, func(t fleet.Target) { has[t.Name] = t.Dial != nil }, func() {}, func(string) {}, nil)
	var a, b nodeObject
	a.Metadata.Name, b.Metadata.Name = "a", "b"
	addNode, nodesDone := r.listNodes()
	addNode(a)
	addNode(b)
	nodesDone()
	var pod podObject
	pod.Metadata.Name, pod.Metadata.UID, pod.Spec.NodeName, pod.Status.Phase = "aws-node", "1", "a", "Running"
	addPod, podsDone := r.listPods()
	addPod(pod)
	podsDone()
	if !has["a"] || has["b"] {
		t.Fatalf("%v", has)
	}
	pod.Metadata.UID, pod.Spec.NodeName = "2", "b"
	r.setPod(pod)
	if has["a"] || !has["b"] {
		t.Errorf("%v", has)
	}
}

// TestRoster_PutsWhatIsRead: a node is put as soon as it and its pod are read, one without a pod when
// both lists are complete. A later list puts what is new, and removes what it lacks.
func TestRoster_PutsWhatIsRead(t *testing.T) {
	t.Parallel()
	c, err := Connect(Config{Rest: &rest.Config{Host: "http://api"}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	r := newRoster(c, func(t fleet.Target) { said = append(said, strings.TrimSpace(t.Name+" "+string(t.State))) },
		func() { said = append(said, "listed") }, func(name string) { said = append(said, "without "+name) }, nil)
	step := func(what string, do func(), want ...string) {
		t.Helper()
		said = nil
		do()
		if !slices.Equal(said, want) {
			t.Errorf("%s: %q, want %q", what, said, want)
		}
	}
	addNode, nodesDone := r.listNodes()
	addPod, podsDone := r.listPods()
	node := func(name string) func() {
		var n nodeObject
		n.Metadata.Name = name
		return func() { addNode(n) }
	}
	pod := func(on string) func() {
		var p podObject
		p.Metadata.Name, p.Metadata.UID, p.Spec.NodeName, p.Status.Phase = "aws-node-"+on, on, on, "Running"
		return func() { addPod(p) }
	}
	step("a node", node("a"))
	step("its pod", pod("a"), "a")
	step("a pod", pod("b"))
	step("its node", node("b"), "b")
	step("a node without a pod", node("c"))
	step("all nodes", nodesDone)
	step("all pods", podsDone, "c "+string(document.StateNoDaemon), "listed")
	addNode, nodesDone = r.listNodes()
	step("the same node", node("a"))
	step("a new node", node("d"), "d "+string(document.StateNoDaemon))
	step("the same node", node("b"))
	step("all nodes again", nodesDone, "without c")
	addPod, podsDone = r.listPods()
	step("the same pod", pod("b"))
	step("all pods again", podsDone, "a "+string(document.StateNoDaemon))
}

// TestAnswers: an API server that refuses requests answers; one that is silent or refuses
// new connections does not.
func TestAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var silent, ends atomic.Bool
		p := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
			if silent.Load() {
				<-r.Context().Done()
			}
			w.WriteHeader(http.StatusForbidden)
		})
		c, err := Connect(Config{Rest: &rest.Config{
			Host: "http://api",
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if ends.Load() {
					return nil, syscall.ECONNREFUSED
				}
				return p.Dial(ctx)
			},
		}, UserAgent: "test", Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Answers(t.Context()); err != nil {
			t.Errorf("refused: %v", err)
		}
		silent.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Answers(ctx); reasonOf(err) != introspect.ReasonTimeout {
			t.Errorf("silent: %v", err)
		}
		silent.Store(false)
		for _, end := range []bool{false, true} {
			ends.Store(end)
			if _, err := c.Pods(t.Context(), "n"); reasonOf(err) != introspect.ReasonForbidden {
				t.Errorf("over the existing connection: %v", err)
			}
			if err := c.Answers(t.Context()); end != errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("ends: %v: %v", end, err)
			}
		}
	})
}
