package fleet_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
)

const recorded = "../api/introspect/testdata/recorded"

func newFleet(t *testing.T, opts fleet.Options) *fleet.Fleet {
	t.Helper()
	opts.Now = time.Now
	f, err := fleet.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func TestSweep_EveryKindOfNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Date(2026, 11, 21, 3, 0, 50, 0, time.UTC)
	f := newFleet(t, fleet.Options{Concurrency: 2, Targets: []fleet.Target{
		{Name: "ours", Address: fleettest.Serve(t, dir, "ours", fleettest.Secondary())},
		{Name: "original", Address: fleettest.ServeRecorded(t, dir, "original", filepath.Join(recorded, "two-enis"), "one-deleted", at)},
		{Name: "gone", Address: "unix:" + filepath.Join(dir, "gone.sock")},
		{Name: "liar", Address: fleettest.ServeBody(t, dir, "liar", `{"kind":"Pod"}`)},
	}})
	var last fleet.Progress
	list := f.Sweep(t.Context(), fleet.Query{ENIs: true, Progress: func(p fleet.Progress) { last = p }})
	if want := (fleet.Progress{Done: 4, OK: 2, Failed: 2, Total: 4}); last != want {
		t.Errorf("progress %+v, want %+v", last, want)
	}
	type row struct {
		name   string
		state  document.State
		source string
		reason introspect.Reason
		enis   int
	}
	var got []row
	for _, n := range list.Items {
		r := row{name: n.Metadata.Name, state: n.State, source: n.Source, enis: len(n.ENIs)}
		if n.Error != nil {
			r.reason = n.Error.Reason
		}
		got = append(got, r)
	}
	want := []row{
		{"ours", document.StateLive, document.SourceSummary, "", 2},
		{"original", document.StateLive, document.SourceV1, "", 2},
		{"gone", document.StateUnreachable, "", introspect.ReasonNoSocket, 0},
		{"liar", document.StateUnreachable, "", introspect.ReasonMalformed, 0},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if !list.Partial || len(list.Errors) != 2 || list.Errors[0].Node != "gone" {
		t.Errorf("partial %v, errors %+v", list.Partial, list.Errors)
	}
	// Both documents of one node agree.
	ours := list.Items[0]
	var assigned, cooling, free int
	for _, e := range ours.ENIs {
		assigned, cooling, free = assigned+e.Assigned, cooling+e.Cooling, free+e.Free
	}
	if c := ours.Summary.Cards[0]; c.Assigned != 7 || *c.Cooling != 2 || c.Free != 9 || assigned != 7 || cooling != 2 || free != 9 {
		t.Errorf("summary %+v, enis %d/%d/%d", c, assigned, cooling, free)
	}
	// Upstream leaves much unknown, which is null.
	v1 := list.Items[1].Summary
	if c := v1.Cards[0]; c.Assigned != 2 || *c.Cooling != 1 || c.Free != 15 || c.ENILimit != nil {
		t.Errorf("original's card %+v", c)
	}
	if *v1.Targets.WarmIP != 1 || v1.Targets.MinimumIP != nil || v1.WaitingADDs != nil || v1.ADDs != nil {
		t.Errorf("original's summary %+v", v1)
	}
}

func TestSweep_AsksTheOriginalForItsSummaryOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	h := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case introspect.PathENIs:
			_, _ = w.Write([]byte(`{"0":{"ENIs":{}}}`))
		case introspect.PathIPAMEnv:
			_, _ = w.Write([]byte(`{"WARM_ENI_TARGET":1}`))
		case introspect.PathSummary:
			asked.Add(1)
			fallthrough
		default:
			_, _ = w.Write([]byte(`{"AvailableCommands":["/v1/enis"]}`))
		}
	}
	f := newFleet(t, fleet.Options{Targets: []fleet.Target{{Name: "n", Address: fleettest.ServeHandler(t, t.TempDir(), "m", h)}}})
	for range 3 {
		list := f.Sweep(t.Context(), fleet.Query{})
		if n := list.Items[0]; n.State != document.StateLive || n.Error != nil {
			t.Errorf("node %+v", n)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("summary asked %d times", asked.Load())
	}
}

func TestSweep_NodeTimeoutAndCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := fleettest.ServePipe(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		targets := []fleet.Target{
			{Name: "hangs", Dial: hangs.Dial},
			{Name: "ours", Dial: fleettest.ServePipe(t, writes(`{"kind":"NodeSummary"}`)).Dial},
		}
		start := time.Now()
		list := newFleet(t, fleet.Options{Targets: targets, NodeTimeout: 200 * time.Millisecond}).Sweep(t.Context(), fleet.Query{})
		if took := time.Since(start); took != 200*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if e := list.Items[0].Error; e == nil || e.Reason != introspect.ReasonTimeout || list.Items[1].State != document.StateLive {
			t.Errorf("items %+v", list.Items)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		list = newFleet(t, fleet.Options{Targets: targets}).Sweep(gone, fleet.Query{})
		for _, n := range list.Items {
			if n.Error == nil || n.Error.Reason != introspect.ReasonCancelled {
				t.Errorf("%s: %+v", n.Metadata.Name, n.Error)
			}
		}
	})
}

func TestSweep_RetriesALostConnectionOnce(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	drop := func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		_, _ = w.Write([]byte(`{"kind":"NodeSummary"}`))
	}
	f := newFleet(t, fleet.Options{Targets: []fleet.Target{{Name: "n", Address: fleettest.ServeHandler(t, t.TempDir(), "n", drop)}}})
	if n := f.Sweep(t.Context(), fleet.Query{}).Items[0]; n.State != document.StateLive || requests.Load() != 2 {
		t.Errorf("state %s after %d requests: %+v", n.State, requests.Load(), n.Error)
	}
}

func TestNodeAndConfig_ByName(t *testing.T) {
	t.Parallel()
	f := newFleet(t, fleet.Options{Targets: []fleet.Target{{Name: "n", Address: fleettest.Serve(t, t.TempDir(), "n", fleettest.Starved())}}})
	if n, ok := f.Node(t.Context(), "n", fleet.Query{}); !ok || n.Summary == nil || n.ENIs != nil {
		t.Errorf("node %v %+v", ok, n)
	}
	if doc, ok, err := f.Config(t.Context(), "n"); !ok || err != nil || len(doc.Items) != 4 {
		t.Errorf("config %+v, %v, %v", doc, ok, err)
	}
	if _, ok := f.Node(t.Context(), "m", fleet.Query{}); ok {
		t.Error("a node that no target has")
	}
	if _, ok, err := f.Config(t.Context(), "m"); ok || err != nil {
		t.Error("settings of a node that no target has")
	}
}

func TestParseTargets(t *testing.T) {
	t.Parallel()
	got, err := fleet.ParseTargets([]string{"a=unix:/run/a=b.sock", "b=10.0.0.1:61679", "c=http://10.0.0.2:61679", "unix:/run/node-d.sock", "10.0.0.3:61679"})
	want := []fleet.Target{
		{Name: "a", Address: "unix:/run/a=b.sock"},
		{Name: "b", Address: "10.0.0.1:61679"},
		{Name: "c", Address: "http://10.0.0.2:61679"},
		{Name: "node-d", Address: "unix:/run/node-d.sock"},
		{Name: "10.0.0.3:61679", Address: "10.0.0.3:61679"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for bad, want := range map[string]string{
		"":                                 "host and port are missing",
		"a=":                               "host and port are missing",
		"=unix:/x":                         "a name of 1",
		"a=https://x:1":                    "only http",
		"a b=unix:/x":                      "contains a space",
		"\x1b[2J=unix:/x":                  "unprintable character",
		strings.Repeat("n", 254) + "=x:80": "a name of 1 to 253",
	} {
		if _, err := fleet.ParseTargets([]string{bad}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
	if _, err := fleet.ParseTargets([]string{"a=x:1", "a=y:1"}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("twice: %v", err)
	}
}

func FuzzParseTargets(f *testing.F) {
	for _, s := range []string{"a=unix:/run/a.sock", "b=10.0.0.1:61679", "http://x:1", "=", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		targets, err := fleet.ParseTargets([]string{s})
		if (err == nil) != (len(targets) == 1) {
			t.Fatalf("%q: %v, %v", s, targets, err)
		}
		if err == nil {
			if _, err := fleet.New(fleet.Options{Targets: targets, Now: time.Now}); err != nil {
				t.Fatalf("%q: %v", s, err)
			}
		}
	})
}
