package kube

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/daemon/cluster"
	"cnictl/testenv"
)

const (
	barePod      = `{"metadata":{"namespace":"a","name":"web-0","uid":"u","resourceVersion":"5"}}`
	announcedPod = `{"metadata":{"namespace":"a","name":"web-0","uid":"u","resourceVersion":"6","annotations":{"vpc.amazonaws.com/pod-eni":"[1]"}}}`
)

// shortPause is the pause between two requests for a pod that a test waits for.
const shortPause = 100 * time.Millisecond

// stalePods is an API server whose list has a pod without its annotation and whose watch
// shows nothing more, while a GET does.
func stalePods(t *testing.T, watch, get http.HandlerFunc) *Client {
	t.Helper()
	server := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"gitVersion":"v1.35.4"}`)
		case r.URL.Path == "/api/v1/namespaces/a/pods/web-0":
			get(w, r)
		case r.URL.Path != "/api/v1/pods":
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Query().Get("watch") != "":
			watch(w, r)
		default:
			fmt.Fprintf(w, `{"metadata":{"resourceVersion":"5"},"items":[%s]}`, barePod)
		}
	})
	c := connect(t, kubeconfig(t, server, server.URL), "x")
	c.pauses.blind, c.pauses.reread = shortPause, shortPause
	run(t, c)
	testenv.Eventually(t, "the pod is cached", func() bool { return c.pods.size() == 1 })
	return c
}

// busy answers like an overloaded API server.
func busy(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }

// dead is an open watch that shows nothing.
func dead(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's own
	<-r.Context().Done()
}

// TestWaitPod_WatchSilent: a cached pod is requested again if the watch is closed or
// dead, but not too often, and a failing API server does not end the wait.
func TestWaitPod_WatchSilent(t *testing.T) {
	t.Parallel()
	for name, watch := range map[string]http.HandlerFunc{"shut": busy, "dead": dead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var gets atomic.Int64
			c := stalePods(t, watch, func(w http.ResponseWriter, r *http.Request) {
				switch gets.Add(1) {
				case 1:
					w.WriteHeader(http.StatusBadGateway)
				case 2:
					fmt.Fprint(w, barePod)
				default:
					fmt.Fprint(w, announcedPod)
				}
			})
			var got waited
			took := testenv.Took(func() { got = <-wait(t.Context(), c, "a", "web-0") })
			if got.err != nil || got.pod.PodENI != "[1]" {
				t.Errorf("%+v, %v", got.pod, got.err)
			}
			if n := gets.Load(); n != 3 || took < 3*shortPause {
				t.Errorf("%d requests in %v, want three and pauses of %v", n, took, shortPause)
			}
		})
	}
	if p := defaultPauses(); p.blind < time.Second || p.reread < p.blind {
		t.Errorf("a pod is asked for again after %v, with a watch %v", p.blind, p.reread)
	}
}

// TestPodFresh ignores the cache.
func TestPodFresh(t *testing.T) {
	t.Parallel()
	var code atomic.Int64
	code.Store(http.StatusOK)
	c := stalePods(t, dead, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(code.Load()))
		fmt.Fprint(w, announcedPod)
	})
	if p, err := c.Pod(t.Context(), "a", "web-0"); err != nil || p.PodENI != "" {
		t.Errorf("the cached pod: %+v, %v", p, err)
	}
	if p, err := c.PodFresh(t.Context(), "a", "web-0"); err != nil || p.PodENI != "[1]" {
		t.Errorf("%+v, %v", p, err)
	}
	code.Store(http.StatusBadGateway)
	if p, err := c.PodFresh(t.Context(), "a", "web-0"); err == nil || p != (cluster.Pod{}) {
		t.Errorf("the API server fails: %+v, %v", p, err)
	}
}
