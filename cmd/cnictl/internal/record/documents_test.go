package record

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// TestRounds: if there are more nodes than a round reads (here in a recording), the worst are read,
// each time with the kernel state of some pods until all pods are read.
func TestRounds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	var file bytes.Buffer
	w, err := record.NewWriter(&file, record.Header{})
	if err != nil {
		t.Fatal(err)
	}
	pod := func(i int) introspect.PodRef { return introspect.PodRef{Namespace: "shop", Name: fmt.Sprint("p", i)} }
	for i := range documentsNodes + 10 {
		n := document.NodeIPAM{Metadata: document.ObjectMeta{Name: fmt.Sprintf("n%02d", i)}, State: document.StateLive, Source: document.SourceSummary, SampledAt: &at, Summary: &introspect.Summary{}}
		waiting := 3
		if i == documentsNodes+9 {
			n.Summary.WaitingADDs = &waiting
			n.ENIs = []introspect.NodeENI{{ID: "eni-1"}}
		}
		err = errors.Join(err, w.WriteSample(n, at))
		docs := watch.Detail{Node: n.Metadata.Name, Plan: &introspect.NodePlan{}, Logs: &introspect.NodeLogs{Lines: []string{"a"}}, Events: &introspect.NodeEvents{}}
		err = errors.Join(err, w.WriteDocuments(docs, at))
		for j := range wiredPods + 1 {
			if len(n.ENIs) == 0 {
				break
			}
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(j)})
			n.ENIs[0].CIDRs = append(n.ENIs[0].CIDRs, introspect.NodeCIDR{CIDR: netip.PrefixFrom(a, 32), Addresses: []introspect.NodeAddress{{Address: a, State: introspect.AddressAssigned, PodNamespace: "shop", PodName: pod(j).Name}}})
			err = errors.Join(err, w.WriteDocuments(watch.Detail{Node: n.Metadata.Name, Pod: &introspect.NodePod{Pod: pod(j)}}, at), w.WriteSample(n, at))
		}
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	p, err := record.Open(&file, record.Options{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	r := newRounds(p, 0)
	round := func(now time.Time) (nodes []string, pods []introspect.PodRef) {
		t.Helper()
		var group errgroup.Group
		r.begin(t.Context(), &group, p.View(), now)
		done := make(chan error, 1)
		go func() { done <- group.Wait() }()
		for {
			select {
			case d := <-r.out:
				if d.Pod != nil {
					pods = append(pods, d.Pod.Pod)
					continue
				}
				nodes = append(nodes, d.Node)
				if d.Plan == nil || d.Logs == nil || d.Events == nil {
					t.Errorf("%s: %+v", d.Node, d)
				}
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				return nodes, pods
			}
		}
	}
	worst := fmt.Sprintf("n%02d", documentsNodes+9)
	nodes, pods := round(at)
	if len(nodes) != documentsNodes || !slices.Contains(nodes, worst) || len(pods) != wiredPods {
		t.Errorf("%d nodes %v, pods %v", len(nodes), nodes, pods)
	}
	if nodes, _ := round(at.Add(documentsEvery - time.Second)); nodes != nil {
		t.Errorf("too early: %v", nodes)
	}
	if _, again := round(at.Add(documentsEvery)); len(again) != 1 || slices.Contains(pods, again[0]) {
		t.Errorf("pods %v, and then %v", pods, again)
	}
	if r.forget(p.View()); len(r.after) != documentsNodes {
		t.Errorf("%d nodes are remembered, want %d", len(r.after), documentsNodes)
	}
	back := store.New()
	back.Put(p.View().Node(worst).NodeIPAM)
	if r.forget(back.View()); len(r.after) != 0 {
		t.Errorf("%d nodes that left, one of which came back, are remembered", len(r.after))
	}
}
