package root_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/root"
	"cnictl/daemon/fleet/watch"
	"cnictl/testenv"
	"cnictl/testenv/kube/fleetsim"
)

// TestTrunks_Watch: while trunks are followed, the API server is asked for the pods once, from its
// cache, and for one watch. With too many pods it is asked node by node, at most every 30 s.
func TestTrunks_Watch(t *testing.T) {
	t.Parallel()
	const interval = 2345 * time.Millisecond // unlike any other interval
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 40, Seed: 3, Churn: time.Second})
	for name, tooMany := range map[string]bool{"watched": false, "too many": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := before(t, sim)
			watched := make(chan struct{})
			if tooMany {
				front.change = crowded
				close(watched) // they are not
			} else {
				once := sync.OnceFunc(func() { close(watched) })
				front.fails = func(r *http.Request) bool {
					if r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("watch") != "" {
						once()
					}
					return false
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rows, read, shown := map[string]int{}, 0, make(chan struct{})
			out, errOut := &lineWriter{line: func(line string) {
				var row struct {
					Node    string
					Waiting *int
				}
				if json.Unmarshal([]byte(line), &row) != nil || row.Node == "" {
					return
				}
				if row.Waiting == nil {
					return
				}
				read++
				if rows[row.Node]++; read == 1 {
					close(shown)
				}
			}}, &lineWriter{}
			f := factory(t, out, errOut)
			tick := f.Tick
			f.Tick = func(every time.Duration) (<-chan time.Time, func()) {
				if every != interval {
					return tick(every)
				}
				ticks := make(chan time.Time)
				go func() {
					defer cancel()
					for _, begun := range []chan struct{}{shown, watched} {
						select {
						case <-begun:
						case <-ctx.Done():
						}
					}
					for range 5 {
						select {
						case ticks <- time.Now(): // the round before is over
						case <-ctx.Done():
							return
						}
					}
				}()
				return ticks, func() {}
			}
			var code int
			took := testenv.Took(func() {
				code = root.Main(ctx, f, append(strings.Fields("trunks -w -o json --interval="+interval.String()), "--kubeconfig="+front.kubeconfig))
			})
			rounds := 1 + int(took/(30*time.Second))
			if code != 0 || !errors.Is(ctx.Err(), context.Canceled) || read == 0 {
				t.Fatalf("exit %d, %v, the pods of %d rows were read\n%s%s", code, ctx.Err(), read, errOut, out)
			}
			front.mu.Lock()
			defer front.mu.Unlock()
			var all, watches, ofNodes []url.Values
			for _, q := range front.pods {
				switch {
				case q.Get("watch") != "":
					watches = append(watches, q)
				case q.Get("fieldSelector") != "":
					ofNodes = append(ofNodes, q)
				case q.Get("continue") == "": // another page, which a real API server has no need for
					all = append(all, q)
				}
			}
			if n := strings.Count(errOut.String(), "could not watch pods"); (n == 1) != tooMany || n > 1 {
				t.Errorf("%d warnings that the pods are not watched:\n%s", n, errOut)
			}
			if len(all) != 1 || all[0].Get("resourceVersion") != "0" {
				t.Errorf("lists of all pods: %v", all)
			}
			most := 0
			if tooMany {
				most = rounds * (len(rows) + 1)
			}
			if len(ofNodes) > most || tooMany && len(ofNodes) == 0 || tooMany == (len(watches) == 1) {
				t.Errorf("%d lists of the pods of %d nodes, want at most %d; %d watches", len(ofNodes), len(rows), most, len(watches))
			}
		})
	}
}

// TestTrunks_WatchWithoutPods: while the API server cannot list pods, trunks are shown without
// them, and with them once it can.
func TestTrunks_WatchWithoutPods(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 40, Seed: 3})
	for name, timeout := range map[string]string{"fails": "", "hangs": " --timeout=10s"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			followWithoutPods(t, before(t, sim), timeout)
		})
	}
}

// followWithoutPods lets the list of pods fail, or hang if there is a time limit, until rows
// without pods are shown.
func followWithoutPods(t *testing.T, front *front, timeout string) {
	t.Helper()
	var without, with atomic.Bool
	shown := make(chan struct{})
	front.fails = func(r *http.Request) bool {
		if r.URL.Path != "/api/v1/pods" || without.Load() {
			return false
		}
		if timeout != "" {
			select {
			case <-shown:
			case <-r.Context().Done():
			}
		}
		return true
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errOut := &lineWriter{line: func(line string) {
		var row struct {
			Node    string
			Waiting *int
		}
		switch err := json.Unmarshal([]byte(line), &row); {
		case err != nil || row.Node == "":
		case row.Waiting == nil:
			if !without.Swap(true) {
				close(shown)
			}
		default:
			with.Store(true)
			cancel()
		}
	}}, &lineWriter{}
	code := root.Main(ctx, factory(t, out, errOut), append(strings.Fields("trunks -w -o json"+timeout), "--kubeconfig="+front.kubeconfig))
	if code != 0 || !without.Load() || !with.Load() {
		t.Errorf("exit %d; rows without pods: %v, with: %v\n%s%s", code, without.Load(), with.Load(), errOut, out)
	}
	if n := strings.Count(errOut.String(), "could not watch pods"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, errOut)
	}
}

// crowded adds more pods than are read to the list of all.
func crowded(r *http.Request, body []byte) []byte {
	if r.URL.Path != "/api/v1/pods" || r.URL.Query().Get("fieldSelector") != "" {
		return body
	}
	var list map[string]any
	if json.Unmarshal(body, &list) != nil {
		return body
	}
	items, _ := list["items"].([]any)
	for i := range watch.MaxClusterPods {
		items = append(items, map[string]any{"metadata": map[string]any{"namespace": "crowd", "name": fmt.Sprint("pod-", i), "uid": fmt.Sprint(i)}})
	}
	list["items"] = items
	changed, err := json.Marshal(list)
	if err != nil {
		return body
	}
	return changed
}
