package live_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/watch"
)

// reasons returns the reasons of a detail's errors.
func reasons(d watch.Detail) map[watch.Want]introspect.Reason {
	out := map[watch.Want]introspect.Reason{}
	for want, e := range d.Errors {
		out[want] = e.Reason
	}
	return out
}

func expect(t *testing.T, what string, d watch.Detail, want map[watch.Want]introspect.Reason) {
	t.Helper()
	got := reasons(d)
	if len(got) != len(want) {
		t.Errorf("%s: errors %v, want %v", what, d.Errors, want)
		return
	}
	for w, reason := range want {
		if got[w] != reason {
			t.Errorf("%s: %v is %q, want %q (%s)", what, w, got[w], reason, d.Errors[w].Message)
		}
	}
}

const all = watch.WantENIs | watch.WantPlan | watch.WantEvents | watch.WantFailures | watch.WantConfig | watch.WantLogs | watch.WantPod | watch.WantPods

func TestDetail_EachDocumentWithItsOwnReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{Kubernetes: live.Kubernetes{Pods: func(_ context.Context, node string) ([]watch.Pod, error) {
			return []watch.Pod{{Phase: "Running", Reason: node}}, nil
		}, AllPods: func(_ context.Context, find watch.PodQuery) (*watch.ClusterPods, error) {
			return &watch.ClusterPods{Pods: []watch.Pod{{Reason: find.Name}}}, nil
		}}})
		if d := b.Detail(t.Context(), "", watch.WantClusterPods, watch.Query{Find: watch.PodQuery{Name: "cart"}}); len(d.Errors) != 0 || d.ClusterPods.Pods[0].Reason != "cart" {
			t.Errorf("pods of the cluster: %+v", d)
		}
		n := newNode(t, "n")
		n.events = 3
		b.roster.put(n.target())
		d := b.Detail(t.Context(), "n", all, watch.Query{Events: watch.EventsAfter{Epoch: "e", Next: 3}})
		expect(t, "ours", d, map[watch.Want]introspect.Reason{
			watch.WantFailures: introspect.ReasonMalformed, watch.WantLogs: introspect.ReasonNotFound, watch.WantPod: introspect.ReasonNotFound,
		})
		if d.ENIs == nil || d.Plan == nil || d.Config == nil || d.Events == nil || d.Events.Next != 3 || d.Failures != nil || len(d.Pods) != 1 || d.Pods[0].Reason != "n" || !d.At.Equal(time.Now()) {
			t.Errorf("detail %+v", d)
		}
		if n.Open() != 0 {
			t.Error("the tunnel of a node that is not on the screen stays open")
		}
		expect(t, "nobody", b.Detail(t.Context(), "nobody", watch.WantPlan|watch.WantPods, watch.Query{}), map[watch.Want]introspect.Reason{watch.WantPlan: introspect.ReasonNotFound})
		n.set(func(n *node) { n.broken = true })
		expect(t, "broken", b.Detail(t.Context(), "n", watch.WantPlan|watch.WantConfig, watch.Query{}), map[watch.Want]introspect.Reason{
			watch.WantPlan: introspect.ReasonNotJSON, watch.WantConfig: introspect.ReasonNotJSON,
		})
	})
}

// TestDetail_OneDeadlineForANodeThatHangs: the deadline covers all documents together.
func TestDetail_OneDeadlineForANodeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{Kubernetes: live.Kubernetes{Pods: func(context.Context, string) ([]watch.Pod, error) { return nil, errors.New("pods: 500") }}})
		slow := fleettest.ServePipe(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		b.roster.put(fleet.Target{Name: "n", Address: "n:1", Dial: slow.Dial}, fleet.Target{Name: "bad", Address: "no address"},
			fleet.Target{Name: "off", Absent: &document.NodeError{Reason: introspect.ReasonOff, Message: "off"}})
		start := time.Now()
		d := b.Detail(t.Context(), "n", watch.WantENIs|watch.WantPlan|watch.WantLogs|watch.WantPods, watch.Query{})
		expect(t, "hangs", d, map[watch.Want]introspect.Reason{
			watch.WantENIs: introspect.ReasonTimeout, watch.WantPlan: introspect.ReasonTimeout, watch.WantLogs: introspect.ReasonTimeout, watch.WantPods: introspect.ReasonTransport,
		})
		if took := time.Since(start); took != fleet.RequestTimeout {
			t.Errorf("it took %s, want %s", took, fleet.RequestTimeout)
		}
		expect(t, "no address", b.Detail(t.Context(), "bad", watch.WantPlan, watch.Query{}), map[watch.Want]introspect.Reason{watch.WantPlan: introspect.ReasonUnresolved})
		expect(t, "absent", b.Detail(t.Context(), "off", watch.WantPlan|watch.WantENIs, watch.Query{}), map[watch.Want]introspect.Reason{
			watch.WantPlan: introspect.ReasonOff, watch.WantENIs: introspect.ReasonOff,
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		expect(t, "given up", b.Detail(ctx, "n", watch.WantPlan, watch.Query{}), map[watch.Want]introspect.Reason{watch.WantPlan: introspect.ReasonCancelled})
		none := run(t, live.Options{})
		expect(t, "no cluster", none.Detail(t.Context(), "n", watch.WantPods|watch.WantKubeEvents|watch.WantContainerLog|watch.WantNodeUse, watch.Query{}), map[watch.Want]introspect.Reason{
			watch.WantPods: introspect.ReasonNotServed, watch.WantKubeEvents: introspect.ReasonNotServed, watch.WantContainerLog: introspect.ReasonNotServed, watch.WantNodeUse: introspect.ReasonNotServed,
		})
	})
}

// TestDetail_TheOriginalIsSpared: upstream logs a line for each request.
func TestDetail_TheOriginalIsSpared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		n := newNode(t, "n")
		n.original = true
		b.Focus(watch.Focus{Open: "n"})
		b.roster.put(n.target())
		for range 60 {
			elapse(time.Second)
			d := b.Detail(t.Context(), "n", watch.WantENIs|watch.WantPlan|watch.WantEvents, watch.Query{})
			expect(t, "open", d, map[watch.Want]introspect.Reason{watch.WantPlan: introspect.ReasonNoEndpoint, watch.WantEvents: introspect.ReasonNoEndpoint})
			if d.ENIs == nil {
				t.Error("no addresses of the open node")
			}
		}
		// Off the screen, right after a sample: there is nothing to show yet.
		b.Focus(watch.Focus{})
		elapse(30 * time.Second)
		for range 12 {
			elapse(7 * time.Second)
			b.Detail(t.Context(), "n", watch.WantENIs, watch.Query{})
		}
		times := n.times(introspect.PathENIs)
		for i := 1; i < len(times); i++ {
			if gap := times[i] - times[i-1]; gap < 10*time.Second {
				t.Errorf("asked again after %s: %v", gap, seconds(times))
			}
		}
		if n.times(introspect.PathPlan) != nil || n.times(introspect.PathEvents) != nil {
			t.Error("asked for what it does not serve")
		}
		if len(times) < 10 || !slices.IsSorted(times) {
			t.Errorf("asked at %v", seconds(times))
		}
	})
}

// TestDetail_UnknownDaemonLimitedReads: until a node is known not to run upstream,
// its first refusal ends the requests.
func TestDetail_UnknownDaemonLimitedReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{})
		b.Pace(watch.Pace{Paused: true})
		n := newNode(t, "n")
		n.original = true
		b.roster.put(n.target())
		d := b.Detail(t.Context(), "n", watch.WantPlan|watch.WantEvents|watch.WantConfig|watch.WantLogs, watch.Query{})
		if len(d.Errors) != 4 || n.times(introspect.PathPlan) == nil || n.times(introspect.PathEvents) != nil || n.times(introspect.PathLogs) != nil {
			t.Errorf("errors %v, asked %v", d.Errors, n.asked)
		}
	})
}

// TestDetail_ContainerLog: it replaces a log that the daemon does not serve.
func TestDetail_ContainerLog(t *testing.T) {
	t.Parallel()
	daemon := &document.NodeObject{Daemon: &document.DaemonPod{Namespace: "kube-system", Name: "aws-node-x"}}
	for name, row := range map[string]struct {
		want   watch.Want
		status int    // of the daemon's /v1/logs, 0 if it succeeds
		code   string // of its fault
		object *document.NodeObject
		err    error // from Kubernetes
		asked  int
		reason introspect.Reason // of the container's log, "" if none
	}{
		"the daemon gives its own": {watch.WantLogs | watch.WantContainerLog, 0, "", daemon, nil, 0, ""},
		"it does not serve it":     {watch.WantLogs | watch.WantContainerLog, 404, introspect.FaultNotServed, daemon, nil, 1, ""},
		"it fails":                 {watch.WantLogs | watch.WantContainerLog, 500, "", daemon, nil, 1, ""},
		"it may give it later":     {watch.WantLogs | watch.WantContainerLog, 503, "", daemon, nil, 0, ""},
		"wanted alone":             {watch.WantContainerLog, 0, "", daemon, nil, 1, ""},
		"not wanted":               {watch.WantLogs, 404, "", daemon, nil, 0, ""},
		"no pod":                   {watch.WantContainerLog, 0, "", nil, nil, 0, introspect.ReasonNoPod},
		"forbidden":                {watch.WantContainerLog, 0, "", daemon, refused{}, 1, introspect.ReasonForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				b := run(t, live.Options{Kubernetes: live.Kubernetes{
					ContainerLog: func(_ context.Context, d document.DaemonPod, q watch.ContainerLogQuery) (watch.ContainerLog, error) {
						asked++
						return watch.ContainerLog{Pod: d.Name, Lines: make([]watch.ContainerLine, q.Lines)}, row.err
					},
				}})
				p := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Path != introspect.PathLogs:
						_, _ = io.WriteString(w, `{"kind":"NodeSummary"}`)
					case row.status == 0:
						_, _ = io.WriteString(w, `{"kind":"NodeLogs"}`)
					default:
						w.WriteHeader(row.status)
						_, _ = fmt.Fprintf(w, `{"kind":%q,"code":%q}`, introspect.KindFault, row.code)
					}
				})
				b.roster.put(fleet.Target{Name: "n", Address: "n:1", Dial: p.Dial, Object: row.object})
				d := b.Detail(t.Context(), "n", row.want, watch.Query{Container: watch.ContainerLogQuery{Lines: 3}})
				if asked != row.asked || d.Errors[watch.WantContainerLog].Reason != row.reason {
					t.Errorf("asked %d times, want %d; %+v", asked, row.asked, d.Errors)
				}
				if got := d.ContainerLog; (got != nil) != (row.asked == 1 && row.err == nil) || got != nil && (got.Pod != "aws-node-x" || len(got.Lines) != 3) {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// refused is an API server's error.
type refused struct{}

func (refused) Error() string                 { return "not allowed" }
func (refused) NodeReason() introspect.Reason { return introspect.ReasonForbidden }

// TestDetail_NodeUse: Kubernetes reports usage even if the daemon does not answer.
func TestDetail_NodeUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{Kubernetes: live.Kubernetes{Use: func(_ context.Context, node string) (watch.NodeUse, error) {
			if node == "bad" {
				return watch.NodeUse{}, refused{}
			}
			return watch.NodeUse{Pods: 7}, nil
		}}})
		b.roster.put(fleet.Target{Name: "off", Absent: &document.NodeError{Reason: introspect.ReasonOff, Message: "off"}})
		if d := b.Detail(t.Context(), "off", watch.WantNodeUse, watch.Query{}); d.Use == nil || d.Use.Pods != 7 || len(d.Errors) != 0 {
			t.Errorf("%+v", d)
		}
		d := b.Detail(t.Context(), "bad", watch.WantNodeUse, watch.Query{})
		expect(t, "forbidden", d, map[watch.Want]introspect.Reason{watch.WantNodeUse: introspect.ReasonForbidden})
		if d.Use != nil {
			t.Errorf("%+v", d.Use)
		}
	})
}

// TestDetail_KubeEventsInMeasure: a screen that asks each second does not query the API
// server each second; another node or start time does query it.
func TestDetail_KubeEventsInMeasure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]int{}
		b := run(t, live.Options{Kubernetes: live.Kubernetes{
			Events: func(_ context.Context, node string, since time.Time) ([]watch.KubeEvent, error) {
				asked[node]++
				if node == "bad" {
					return nil, refused{}
				}
				return []watch.KubeEvent{{Node: node, At: since}}, nil
			},
		}})
		for range 30 {
			d := b.Detail(t.Context(), "a", watch.WantKubeEvents, watch.Query{})
			if len(d.KubeEvents) != 1 || d.KubeEvents[0].Node != "a" {
				t.Fatalf("%+v", d)
			}
			elapse(time.Second)
		}
		if asked["a"] != 3 {
			t.Errorf("asked %d times in 30 s", asked["a"])
		}
		b.Detail(t.Context(), "b", watch.WantKubeEvents, watch.Query{})
		if d := b.Detail(t.Context(), "b", watch.WantKubeEvents, watch.Query{KubeEventsSince: time.Unix(9, 0)}); asked["b"] != 2 || d.KubeEvents[0].At.Unix() != 9 {
			t.Errorf("asked %d times, %+v", asked["b"], d)
		}
		expect(t, "forbidden", b.Detail(t.Context(), "bad", watch.WantKubeEvents, watch.Query{}), map[watch.Want]introspect.Reason{watch.WantKubeEvents: introspect.ReasonForbidden})
	})
}
