package fleet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/store"
)

// refusal is an error with its own reason, as tunnels return.
type refusal struct{ reason introspect.Reason }

func (r refusal) Error() string                 { return "refused: " + string(r.reason) }
func (r refusal) NodeReason() introspect.Reason { return r.reason }

func dialError(err error) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) { return nil, err }
}

// TestSweep_DegradesInOrder: summary, upstream's documents, metrics, then what Kubernetes
// reports.
func TestSweep_DegradesInOrder(t *testing.T) {
	t.Parallel()
	object := &document.NodeObject{Zone: "eu-1a", OS: "linux"}
	fargate := &document.NodeObject{OS: "linux", Labels: map[string]string{"eks.amazonaws.com/compute-type": "fargate"}}
	metrics := func(context.Context) ([]byte, error) {
		return []byte("awscni_total_ip_addresses 9\nawscni_assigned_ip_addresses 4\n"), nil
	}
	noMetrics := func(context.Context) ([]byte, error) { return nil, errors.New("no") }
	absent := func(reason introspect.Reason) *document.NodeError {
		return &document.NodeError{Reason: reason, Message: "why"}
	}
	ours := fleettest.ServePipe(t, writes(`{"kind":"NodeSummary"}`))
	original := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case introspect.PathENIs:
			_, _ = io.WriteString(w, `{"0":{"ENIs":{}}}`)
		default:
			_, _ = io.WriteString(w, `{"AvailableCommands":["/v1/enis"]}`)
		}
	})
	rows := []struct {
		target fleet.Target
		state  document.State
		source string
		via    string
		reason introspect.Reason
		failed bool
		word   string
	}{
		{fleet.Target{Name: "ours", Dial: ours.Dial, Via: document.ViaPortForward, Metrics: metrics}, document.StateLive, document.SourceSummary, document.ViaPortForward, "", false, "ok"},
		{fleet.Target{Name: "original", Dial: original.Dial, Metrics: metrics}, document.StateLive, document.SourceV1, document.ViaDirect, "", false, "ok"},
		{fleet.Target{Name: "off", Dial: dialError(refusal{introspect.ReasonOff}), Metrics: metrics, Object: object}, document.StateMetricsOnly, document.SourceMetrics, document.ViaProxy, introspect.ReasonOff, true, "metrics-only: introspection-off"},
		{fleet.Target{Name: "forbidden, but metrics", Dial: dialError(refusal{introspect.ReasonForbidden}), Metrics: metrics}, document.StateMetricsOnly, document.SourceMetrics, document.ViaProxy, introspect.ReasonForbidden, true, "metrics-only: forbidden"},
		{fleet.Target{Name: "off, no metrics", Dial: dialError(refusal{introspect.ReasonOff}), Metrics: noMetrics, Object: object}, document.StateAPIOnly, "", "", introspect.ReasonOff, true, "api-only: introspection-off"},
		{fleet.Target{Name: "off, no object", Dial: dialError(refusal{introspect.ReasonOff})}, document.StateUnreachable, "", "", introspect.ReasonOff, true, "unreachable: introspection-off"},
		{fleet.Target{Name: "forbidden", Dial: dialError(refusal{introspect.ReasonForbidden}), Object: object}, document.StateForbidden, "", "", introspect.ReasonForbidden, true, "forbidden"},
		{fleet.Target{Name: "credential", Dial: dialError(refusal{introspect.ReasonCredential}), Object: object}, document.StateUnreachable, "", "", introspect.ReasonCredential, true, "unreachable: credential"},
		{fleet.Target{Name: "lost", Dial: dialError(errors.New("reset")), Object: object}, document.StateUnreachable, "", "", introspect.ReasonTransport, true, "unreachable: transport"},
		{fleet.Target{Name: "pending", Absent: absent(introspect.ReasonPodNotRunning), State: document.StateAPIOnly, Object: object}, document.StateAPIOnly, "", "", introspect.ReasonPodNotRunning, true, "api-only: pod-not-running"},
		{fleet.Target{Name: "absent", Absent: absent(introspect.ReasonNoPod)}, document.StateUnreachable, "", "", introspect.ReasonNoPod, true, "unreachable: no-pod"},
		{fleet.Target{Name: "no daemon on linux", Absent: absent(introspect.ReasonNoPod), State: document.StateNoDaemon, Object: object}, document.StateNoDaemon, "", "", introspect.ReasonNoPod, true, "no daemon: no-pod"},
		{fleet.Target{Name: "windows", Absent: absent(introspect.ReasonNoPod), State: document.StateNoDaemon, Object: &document.NodeObject{OS: "windows"}}, document.StateNoDaemon, "", "", introspect.ReasonNoPod, false, "no daemon needed"},
		{fleet.Target{Name: "fargate", Absent: absent(introspect.ReasonNoPod), State: document.StateNoDaemon, Object: fargate}, document.StateNoDaemon, "", "", introspect.ReasonNoPod, false, "no daemon needed"},
	}
	var targets []fleet.Target
	for _, r := range rows {
		r.target.Address = r.target.Name
		targets = append(targets, r.target)
	}
	var last fleet.Progress
	f := newFleet(t, fleet.Options{Targets: targets})
	list := f.Sweep(t.Context(), fleet.Query{Progress: func(p fleet.Progress) { last = p }})
	failed := 0
	for i, want := range rows {
		n := list.Items[i]
		var reason introspect.Reason
		if n.Error != nil {
			reason = n.Error.Reason
		}
		if n.Metadata.Name != want.target.Name || n.State != want.state || n.Source != want.source || n.Via != want.via || reason != want.reason ||
			fleet.Failed(n) != want.failed || fleet.Word(n) != want.word || n.Object != want.target.Object {
			t.Errorf("%s: state %s, source %q, via %q, %+v, failed %v, word %q", want.target.Name, n.State, n.Source, n.Via, n.Error, fleet.Failed(n), fleet.Word(n))
		}
		if want.failed {
			failed++
		}
	}
	if want := (fleet.Progress{Done: len(rows), OK: len(rows) - failed, Failed: failed, Total: len(rows)}); last != want || len(list.Errors) != failed {
		t.Errorf("progress %+v, %d errors, want %+v", last, len(list.Errors), want)
	}
	totals := store.Of(list.Items).Totals
	if totals.Nodes != 14 || totals.Live != 2 || totals.Partial != 2 || totals.Down != 8 || totals.NoDaemon != 2 {
		t.Errorf("counts %+v", totals)
	}
	if totals.Held != 18 || totals.Assigned != 8 {
		t.Errorf("what metrics report is not in the sums: %+v", totals)
	}
	if ours.Open() != 0 || original.Open() != 0 {
		t.Error("a sweep leaves tunnels open")
	}
}

func TestAsk_AnAbsentNode(t *testing.T) {
	t.Parallel()
	f := newFleet(t, fleet.Options{Targets: []fleet.Target{{Name: "n", Absent: &document.NodeError{Reason: introspect.ReasonNoPod, Message: "why"}}}})
	errs := f.Ask(t.Context(), nil, func(context.Context, int, fleet.Target, *client.Client) error { t.Error("asked"); return nil })
	if _, ok, err := f.Config(t.Context(), "n"); !ok || client.ReasonOf(err) != introspect.ReasonNoPod || client.ReasonOf(errs[0]) != introspect.ReasonNoPod {
		t.Errorf("%v, %v", err, errs)
	}
}

// TestSweep_PartialWhenItsTimeIsOver: nodes that were read are kept; the rest report that
// they were not.
func TestSweep_PartialWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, `{"kind":"NodeSummary"}`)
		})
		var targets []fleet.Target
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			targets = append(targets, fleet.Target{Name: name, Dial: slow.Dial, Object: &document.NodeObject{}})
		}
		targets[4].Object = nil
		f, err := fleet.New(fleet.Options{Targets: targets, Concurrency: 1, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		list := f.Sweep(ctx, fleet.Query{})
		var got []document.State
		for _, n := range list.Items {
			got = append(got, n.State)
		}
		live, unread := document.StateLive, document.StateAPIOnly
		if diff := cmp.Diff([]document.State{live, live, document.StateUnreachable, unread, document.StateUnreachable}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if e := list.Items[3].Error; !list.Partial || len(list.Errors) != 3 || e.Reason != introspect.ReasonTimeout || e.Message != "not read: timed out before its turn" {
			t.Errorf("%+v", list.Errors)
		}
	})
}

// TestRead_Deadlines: of the dial, of an answer, and of the whole read.
func TestRead_Deadlines(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		node, dial, answer time.Duration // node limits the whole read; 0 means the default
		want               time.Duration
		reason             introspect.Reason
	}{
		"in time":          {0, 2900 * time.Millisecond, 1900 * time.Millisecond, 4800 * time.Millisecond, ""},
		"a slow dial":      {0, time.Hour, 0, 3 * time.Second, introspect.ReasonTimeout},
		"a slow answer":    {0, time.Second, time.Hour, 3 * time.Second, introspect.ReasonTimeout},
		"both nearly slow": {0, 2900 * time.Millisecond, time.Hour, 4900 * time.Millisecond, introspect.ReasonTimeout},
		"more time":        {30 * time.Second, 8 * time.Second, 20 * time.Second, 28 * time.Second, ""},
		"too slow for it":  {30 * time.Second, time.Second, time.Hour, 28 * time.Second, introspect.ReasonTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				node := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-time.After(row.answer):
					case <-r.Context().Done():
					}
					_, _ = io.WriteString(w, `{"kind":"NodeSummary"}`)
				})
				dial := func(ctx context.Context) (net.Conn, error) {
					select {
					case <-time.After(row.dial):
						return node.Dial(ctx)
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				r, err := fleet.NewReader(fleet.Target{Name: "n", Dial: dial}, fleet.ReaderOptions{NodeTimeout: row.node, Now: time.Now})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				n := r.Read(t.Context(), fleet.Query{})
				took := time.Since(start)
				r.Close()
				if took != row.want || (n.Error == nil) != (row.reason == "") || n.Error != nil && n.Error.Reason != row.reason {
					t.Errorf("took %s, want %s: %s %+v", took, row.want, n.State, n.Error)
				}
				synctest.Wait()
				if node.Open() != 0 {
					t.Errorf("%d connections left", node.Open())
				}
			})
		})
	}
}

// TestRead_RetriesTransportErrorsAlone: once, after a short pause.
func TestRead_RetriesTransportErrorsAlone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		want int32
	}{
		"lost":      {errors.New("reset by peer"), 2},
		"forbidden": {refusal{introspect.ReasonForbidden}, 1},
		"off":       {refusal{introspect.ReasonOff}, 1},
		"in time":   {context.DeadlineExceeded, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var dials atomic.Int32
				dial := func(context.Context) (net.Conn, error) { dials.Add(1); return nil, row.err }
				r, err := fleet.NewReader(fleet.Target{Name: "n", Dial: dial}, fleet.ReaderOptions{Now: time.Now})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				r.Read(t.Context(), fleet.Query{})
				if took := time.Since(start); dials.Load() != row.want || took > 100*time.Millisecond {
					t.Errorf("%d dials in %s, want %d", dials.Load(), took, row.want)
				}
			})
		})
	}
}

// TestRead_SilentMetrics: metrics of a silent node get less time than its answer had. A node
// that refuses may still serve metrics, so they get the full time.
func TestRead_SilentMetrics(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		want time.Duration
	}{
		"silent":  {nil, fleet.RequestTimeout + time.Second},
		"refuses": {refusal{introspect.ReasonOff}, fleet.DefaultNodeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				node := fleettest.ServePipe(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				dial := node.Dial
				if row.err != nil {
					dial = dialError(row.err)
				}
				metrics := func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
				r, err := fleet.NewReader(fleet.Target{Name: "n", Dial: dial, Metrics: metrics}, fleet.ReaderOptions{Now: time.Now})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				n := r.Read(t.Context(), fleet.Query{})
				if took := time.Since(start); took != row.want || n.Error == nil {
					t.Errorf("took %s, want %s: %+v", took, row.want, n.Error)
				}
				r.Close()
				synctest.Wait()
			})
		})
	}
}

// TestRead_TracesTheNodeAlone: requests made by the dial are not part of the trace that
// times the node's answer.
func TestRead_TracesTheNodeAlone(t *testing.T) {
	t.Parallel()
	node := fleettest.ServePipe(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"kind":"NodeSummary"}`) })
	var traced atomic.Bool
	dial := func(ctx context.Context) (net.Conn, error) {
		traced.Store(httptrace.ContextClientTrace(ctx) != nil)
		return node.Dial(ctx)
	}
	r, err := fleet.NewReader(fleet.Target{Name: "n", Dial: dial}, fleet.ReaderOptions{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := r.Read(t.Context(), fleet.Query{}); n.State != document.StateLive || traced.Load() {
		t.Errorf("%s, the dial is traced: %t", n.State, traced.Load())
	}
}

// TestRead_ProbesOncePerKey: what a pod was found not to serve is not requested again from
// the same pod, whatever fails in between.
func TestRead_ProbesOncePerKey(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ key, settings string }{
		{"", `{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":false,"WARM_ENI_TARGET":1}`}, {"uid", `{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":false,"WARM_ENI_TARGET":1}`}, {"uid", `{"AvailableCommands":["/v1/enis"]}`},
	} {
		key := row.key
		var probes, settings, requests atomic.Int32
		node := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1)%5 == 0 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			switch r.URL.Path {
			case introspect.PathENIs:
				_, _ = io.WriteString(w, `{"0":{"ENIs":{}}}`)
			case introspect.PathIPAMEnv:
				settings.Add(1)
				_, _ = io.WriteString(w, row.settings)
			default:
				probes.Add(1)
				_, _ = io.WriteString(w, `{"AvailableCommands":["/v1/enis"]}`)
			}
		})
		r, err := fleet.NewReader(fleet.Target{Name: "n", Dial: node.Dial, Key: key}, fleet.ReaderOptions{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			r.Read(t.Context(), fleet.Query{})
		}
		r.Close()
		if got := probes.Load(); key != "" && got != 1 || key == "" && got < 2 {
			t.Errorf("key %q: asked for its summary %d times", key, got)
		}
		if got := settings.Load(); key != "" && got != 1 || key == "" && got < 2 {
			t.Errorf("key %q: asked for its settings %d times", key, got)
		}
	}
}

// TestRead_CompletesTheOriginal: Kubernetes' data completes the summary of an upstream node,
// whose source stays unchanged, and the settings of its pod make a what-if of it possible.
func TestRead_CompletesTheOriginal(t *testing.T) {
	t.Parallel()
	node := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case introspect.PathENIs:
			_, _ = io.WriteString(w, `{"0":{"ENIs":{"eni-1":{"ID":"eni-1","IsPrimary":true}}}}`)
		case introspect.PathIPAMEnv:
			_, _ = io.WriteString(w, `{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":false,"WARM_ENI_TARGET":1}`)
		default:
			_, _ = io.WriteString(w, `{"AvailableCommands":["/v1/enis"]}`)
		}
	})
	pods := 29
	object := &document.NodeObject{InstanceType: "m5.large", InstanceID: "i-1", MaxPods: &pods}
	metrics := func(context.Context) ([]byte, error) {
		return []byte("awscni_total_ip_addresses 9\nawscni_assigned_ip_addresses 4\n"), nil
	}
	for source, target := range map[string]fleet.Target{
		document.SourceV1:      {Name: "n", Dial: node.Dial, Object: object},
		document.SourceMetrics: {Name: "n", Dial: dialError(refusal{introspect.ReasonOff}), Metrics: metrics, Object: object},
	} {
		read := func() document.NodeIPAM {
			r, err := fleet.NewReader(target, fleet.ReaderOptions{Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			return r.Read(t.Context(), fleet.Query{})
		}
		n := read()
		if s := n.Summary; n.Source != source || s.InstanceType != "m5.large" || *s.Cards[0].ENILimit != 3 || *s.MaxPods.Value != 29 || (s.MaxPods.Verdict == introspect.MaxPodsOK) != (source == document.SourceV1) {
			t.Errorf("%s: %s, %+v", source, n.Source, s)
		}
		// Its pod declares the settings that it does not report.
		if _, why := fleet.WhatIf(n); why == "" {
			t.Errorf("%s: a node whose targets are unknown is simulated", source)
		}
		target.Env = map[string]string{"MINIMUM_IP_TARGET": "8", "MAX_ENI": "2"}
		what, why := fleet.WhatIf(read())
		if to := what.Settings; why != "" || to.MinimumIP != 8 || to.WarmENI != 1 || to.MaxPods != 29 || to.Capacity() != 18 {
			t.Errorf("%s: %+v %s", source, what, why)
		}
	}
}
