package watched

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
	"cnictl/testenv/text/tour"
	"cnictl/tui/pages/pagetest"
)

func nothing(int, int, string) {}

// counted records which nodes were asked for documents.
type counted struct {
	Source
	mu    sync.Mutex // guards asked
	asked []string
	want  watch.Want
	query watch.Query
}

func (c *counted) Detail(ctx context.Context, node string, want watch.Want, q watch.Query) watch.Detail {
	c.mu.Lock()
	c.asked, c.want, c.query = append(c.asked, node), want, q
	c.mu.Unlock()
	return c.Source.Detail(ctx, node, want, q)
}

// TestEvidence_Recording: the recording of the docs shows its incident on the affected node, and
// nothing on healthy nodes. The saved evidence yields the same.
func TestEvidence_Recording(t *testing.T) {
	t.Parallel()
	src := &counted{Source: tour.Open(t)}
	var steps []int
	shown := 0
	ev, err := Evidence(t.Context(), src, evidence.Scope{Cluster: true}, nil, func(done, _ int, _ string) { steps = append(steps, done) },
		func(so *evidence.Evidence) {
			for _, n := range so.Nodes {
				if n.First.Plan.OK() {
					t.Errorf("%s is shown before its documents are read, with its plan", n.Name)
				}
			}
			shown = len(so.Nodes)
		})
	if err != nil {
		t.Fatal(err)
	}
	if len(ev.Nodes) != len(src.View().Nodes) || shown != len(ev.Nodes) || ev.Mode != evidence.ModeLaptop || !ev.At.Equal(src.Now()) {
		t.Errorf("%d nodes, mode %s, at %s", len(ev.Nodes), ev.Mode, ev.At)
	}
	slices.Sort(src.asked)
	if n := len(src.asked); n == 0 || !slices.Contains(src.asked, tour.Starved) || !slices.IsSorted(steps) || steps[len(steps)-1] != n {
		t.Errorf("asked %v, progress %v", src.asked, steps)
	}
	r := causes.Diagnose(ev, causes.Options{})
	at := slices.IndexFunc(r.Findings, func(f document.Finding) bool { return f.Code == "ip/subnet-exhausted" })
	if at < 0 {
		t.Fatalf("found %+v", r.Findings)
	}
	if f := r.Findings[at]; f.Confidence != "confirmed" || !slices.Equal(f.Nodes, []string{tour.Starved}) {
		t.Errorf("%s on %v", f.Confidence, f.Nodes)
	}
	well := func(name string) bool {
		n := src.View().Node(name)
		return n.State == document.StateLive && len(n.Problems) == 0 && name != tour.Trunk // of which a pod waits for its branch ENI
	}
	for _, f := range r.Findings {
		if f.Severity != "info" && slices.ContainsFunc(f.Nodes, well) {
			t.Errorf("%s (%s) on %v, one of them healthy", f.Code, f.Severity, f.Nodes)
		}
	}
	saved, err := file.Save(ev)
	if err != nil {
		t.Fatal(err)
	}
	again, err := file.Load(saved)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, causes.Diagnose(again, causes.Options{})); diff != "" {
		t.Errorf("saved and loaded (-before +after):\n%s", diff)
	}
}

// TestEvidence_Named: named nodes are read whatever their state, including documents of the
// scope's pod.
func TestEvidence_Named(t *testing.T) {
	t.Parallel()
	src := &counted{Source: tour.Open(t)}
	ev, err := Evidence(t.Context(), src, evidence.Scope{Pod: "shop/cart-7d9f5b-24bbd"}, []string{tour.Upstream, tour.Trunk}, nothing, nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Sort(src.asked); len(ev.Nodes) != 2 || !slices.Equal(src.asked, []string{tour.Trunk, tour.Upstream}) {
		t.Errorf("%d nodes, asked %v", len(ev.Nodes), src.asked)
	}
	if src.want&watch.WantPod == 0 || src.query.Pod != (introspect.PodRef{Namespace: "shop", Name: "cart-7d9f5b-24bbd"}) {
		t.Errorf("asked for %b of %+v", src.want, src.query.Pod)
	}
	for _, n := range ev.Nodes {
		switch r := n.First; n.Name {
		case tour.Upstream:
			if r.Summary.OK() || !r.ENIs.OK() || r.Plan.OK() {
				t.Errorf("upstream's daemon: %v", r.Missing())
			}
		case tour.Trunk:
			if !r.Summary.OK() || !r.ENIs.OK() || !r.LogIPAMD.OK() || !r.Pods.OK() || r.Rules.Missing != evidence.MissingMode || r.Interfaces.Missing != evidence.MissingNotAsked {
				t.Errorf("ours: %v", r.Missing())
			}
		}
	}
	if _, err := Evidence(t.Context(), src, evidence.Scope{}, []string{"unknown"}, nothing, nil); !errors.Is(err, ErrNoNodes) {
		t.Errorf("no such node: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Evidence(ended, src, evidence.Scope{}, nil, nothing, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// TestEvidence_Stale: old readings of a node that no longer answers are not evidence.
func TestEvidence_Stale(t *testing.T) {
	t.Parallel()
	n := &store.Node{NodeIPAM: document.NodeIPAM{
		State: document.StateStale, Source: document.SourceSummary, Summary: &introspect.Summary{}, ENIs: []introspect.NodeENI{{ID: "eni-1"}},
		Error: &document.NodeError{Reason: introspect.ReasonTimeout, Message: "no answer within 5s"},
	}}
	r := sampled(n, tour.End())
	if r.Summary.Missing != evidence.MissingTimeout || r.ENIs.Missing != evidence.MissingTimeout {
		t.Errorf("%v", r.Missing())
	}
}

// TestEvidence_Hostile: no answer of a node breaks the doctor.
func TestEvidence_Hostile(t *testing.T) {
	t.Parallel()
	ev, err := Evidence(t.Context(), pagetest.Fleet(), evidence.Scope{}, pagetest.All(), nothing, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(ev.Nodes) != len(pagetest.All()) {
		t.Errorf("%d nodes", len(ev.Nodes))
	}
	causes.Diagnose(ev, causes.Options{})
	if _, err := file.Save(ev); err != nil {
		t.Error(err)
	}
}
