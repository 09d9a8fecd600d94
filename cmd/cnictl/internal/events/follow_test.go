package events

import (
	"slices"
	"testing"
	"time"

	"cnictl/daemon/fleet"
)

// TestFeed_WaitsForTheNodes: kubelet may report a pod before its node is listed. The event
// is printed once the node is selected.
func TestFeed_WaitsForTheNodes(t *testing.T) {
	t.Parallel()
	of := func(node string) (r row) { r.Node = node; return r }
	names := func(rows []row) (out []string) {
		for _, r := range rows {
			out = append(out, r.Node)
		}
		return out
	}
	nodes, err := fleet.New(fleet.Options{Targets: []fleet.Target{{Name: "new", Address: "127.0.0.1:1"}}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	come := feed{of: &selection{nodes: map[string]bool{"there": true}}, signal: make(chan struct{}, 1)}
	come.add(of("new"), of("there"), of("other"))
	if got := names(come.take()); !slices.Equal(got, []string{"there"}) {
		t.Errorf("at first %v", got)
	}
	<-come.signal
	come.selects(nodes)
	select {
	case <-come.signal:
	default:
		t.Error("the printer is not notified")
	}
	if got := names(come.take()); !slices.Equal(got, []string{"new"}) {
		t.Errorf("then %v", got)
	}
	for range 2 * maxWaiting {
		come.add(of("other"))
	}
	if come.take(); len(come.rows) != maxWaiting {
		t.Errorf("%d events wait", len(come.rows))
	}
}
