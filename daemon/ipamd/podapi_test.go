package ipamd

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/kube"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/keeper"
	"cnictl/testenv"
)

// asked is a backend whose owner and API server the test plays.
type asked struct {
	*backend
	t      *testing.T
	ops    sync.WaitGroup
	server *httptest.Server

	mu    sync.Mutex
	clock time.Time // the owner's; guarded by mu
}

// newAsked serves an API server with one pod, shop/p. Each request first goes to answer,
// which returns true if it has answered.
func newAsked(t *testing.T, c config.Config, answer func(a *asked, w http.ResponseWriter, r *http.Request) bool) *asked {
	t.Helper()
	a := &asked{t: t, clock: time.Unix(1_790_000_000, 0)}
	a.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case answer != nil && answer(a, w, r):
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"gitVersion":"v1.35.4"}`)
		default:
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"p","uid":"u-1"}}`)
		}
	}))
	t.Cleanup(a.server.Close)
	c.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
		"clusters":[{"name":"k","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, a.server.URL)
	if err := os.WriteFile(c.Kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	api, err := newKubernetes(Deps{Config: c}, log)
	if err != nil {
		t.Fatal(err)
	}
	o := newOwner(metrics.New(metrics.Options{}))
	o.now = a.now
	api.owner, api.targets = o, newTargets(c, config.Facts{}, nil)
	api.problem = func(config.Problem) {}
	a.backend = &backend{
		owner: o, log: log, wait: c.AddWait, kubernetes: api, annotate: c.AnnotatePodIP, withdrawals: make(chan struct{}, withdrawalsMost),
		onEnd: func(func()) func() bool { return func() bool { return true } },
		beside: func(f func(context.Context)) {
			a.ops.Go(func() { f(t.Context()) })
		},
	}
	t.Cleanup(a.ops.Wait)
	return a
}

func (a *asked) now() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clock
}

func (a *asked) pass(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clock = a.clock.Add(d)
}

// take returns the next message for the keeper, which must have type M.
func take[M keeper.Message](a *asked) (m M) {
	a.t.Helper()
	i := testenv.Receive(a.t, fmt.Sprintf("a %T for the keeper", m), a.owner.inbox)
	m, ok := i.message.(M)
	if !ok {
		a.t.Fatalf("the keeper got %+v, want a %T", i.message, m)
	}
	return m
}

// start requests an address for shop/p.
func (a *asked) start() <-chan *cniwire.AddReply {
	reply := make(chan *cniwire.AddReply, 1)
	go func() { reply <- a.Add(a.t.Context(), addRequest("p")) }()
	return reply
}

var given = &cniwire.AddReply{Success: true, Allocations: []cniwire.Allocation{{IPv4: "10.0.1.1"}}}

// TestAdd_OneDeadline: time spent reading the pod reduces the wait for the pool, and even
// without a wait for the pool the pod is read.
func TestAdd_OneDeadline(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, 10 * time.Second, time.Minute} {
		t.Run(wait.String(), func(t *testing.T) {
			t.Parallel()
			a := newAsked(t, config.Config{AnnotatePodIP: true, AddWait: wait}, func(a *asked, _ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet {
					a.pass(8 * time.Second)
				}
				return false
			})
			began := a.now()
			reply := a.start()
			add := take[*keeper.Add](a)
			if want := began.Add(wait); !add.Deadline.Equal(want) {
				t.Errorf("the pool is waited for until %v after the ADD came, want %v", add.Deadline.Sub(began), want.Sub(began))
			}
			add.Reply(given)
			if r := <-reply; !r.Success {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestAdd_AnnotationRefused: the address is taken back, and not released like one that a pod
// has used.
func TestAdd_AnnotationRefused(t *testing.T) {
	t.Parallel()
	a := newAsked(t, config.Config{AnnotatePodIP: true, AddWait: time.Second}, func(_ *asked, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			return true
		}
		return false
	})
	reply := a.start()
	add := take[*keeper.Add](a)
	add.Reply(given)
	back := take[keeper.TakeBack](a)
	if back.Add != add {
		t.Error("another ADD is taken back")
	}
	back.Done()
	if r := <-reply; r.Success || r.Cause != string(cause.PodAnnotation) {
		t.Errorf("%+v", r)
	}
	take[keeper.BranchFailed](a)
}

// TestAdd_Lost: while the API server is known to be lost, and still is, no address is
// assigned. If it is back, that is noticed before the watches notice it.
func TestAdd_Lost(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		t.Run(fmt.Sprintf("back %v", back), func(t *testing.T) {
			t.Parallel()
			a := newAsked(t, config.Config{AnnotatePodIP: true}, func(_ *asked, w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/version" && !back {
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				}
				return false
			})
			a.kubernetes.lost.Store(true)
			reply := a.start()
			if back {
				take[*keeper.Add](a).Reply(given)
				if r := <-reply; !r.Success {
					t.Errorf("%+v", r)
				}
				return
			}
			take[keeper.BranchFailed](a)
			if r := <-reply; r.Cause != string(cause.PodAnnotation) || !r.Transient || !strings.Contains(r.Detail, "lost") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestDel_Withdraws: a DEL waits briefly for its pod's annotation, but not if the API server
// is away or does not answer.
func TestDel_Withdraws(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name         string
		lost, silent bool
	}{{name: "answers"}, {name: "is lost", lost: true, silent: true}, {name: "does not answer", silent: true}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			written, release := make(chan struct{}, 1), make(chan struct{})
			a := newAsked(t, config.Config{AnnotatePodIP: true}, func(_ *asked, w http.ResponseWriter, r *http.Request) bool {
				if row.silent {
					<-release
				}
				if r.Method == http.MethodPatch {
					written <- struct{}{}
				} else {
					fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"p","uid":"u-1","resourceVersion":"7","annotations":{%q:"10.0.1.1"}}}`, podIPs)
					return true
				}
				return false
			})
			a.kubernetes.lost.Store(row.lost)
			reply := make(chan *cniwire.DelReply, 1)
			go func() {
				reply <- a.Del(t.Context(), &cniwire.DelRequest{PodName: "p", PodNamespace: "shop", ContainerID: "p", IfName: "eth0", NetworkName: "aws-cni"})
			}()
			take[*keeper.Del](a).Reply(&cniwire.DelReply{Success: true, Allocations: given.Allocations})
			if r := <-reply; !r.Success {
				t.Errorf("%+v", r)
			}
			if !row.silent && len(written) == 0 {
				t.Error("the annotation is still there when the DEL is answered")
			}
			close(release)
			testenv.Receive(t, "the write of the annotation, alongside the answer", written)
		})
	}
}

// TestAdd_StaleCache: a pod with its predecessor's name is read if the watch does not show
// it.
func TestAdd_StaleCache(t *testing.T) {
	t.Parallel()
	const older = `{"metadata":{"namespace":"shop","name":"p","uid":"u-1","resourceVersion":"1"},"spec":{"nodeName":"worker"}}`
	a := newAsked(t, config.Config{AnnotatePodIP: true, NodeName: "worker"}, func(_ *asked, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Query().Has("watch"):
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case r.URL.Path == "/api/v1/pods":
			fmt.Fprintf(w, `{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[%s]}`, older)
		case r.URL.Path == "/api/v1/nodes":
			fmt.Fprint(w, `{"kind":"NodeList","metadata":{"resourceVersion":"1"},"items":[]}`)
		case r.URL.Path == "/api/v1/namespaces/shop/pods/p":
			fmt.Fprint(w, strings.Replace(older, "u-1", "u-2", 1))
		default:
			return false
		}
		return true
	})
	ctx, cancel := context.WithCancel(t.Context())
	seen, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		a.kubernetes.Run(ctx, kube.Changes{Pods: func() { signal(seen) }})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	<-seen
	reply := make(chan *cniwire.AddReply, 1)
	go func() {
		req := addRequest("p")
		req.PodUID = "u-2"
		reply <- a.Add(t.Context(), req)
	}()
	take[*keeper.Add](a).Reply(given)
	if r := <-reply; !r.Success {
		t.Errorf("%+v", r)
	}
}
