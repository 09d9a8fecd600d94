package root_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/root"
	"cnictl/testenv/kube/fleetsim"
)

// TestWatch_FirstListIsInOrder: nodes arrive one by one, and a sorted list waits for all
// of them.
func TestWatch_FirstListIsInOrder(t *testing.T) {
	t.Parallel()
	const nodes = 12
	sim := fleetsim.New(t, fleetsim.Options{Nodes: nodes, Seed: 1, Churn: -1, Latency: 50 * time.Millisecond})
	front := before(t, sim)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var names []string
	out, errOut := lineWriter{line: func(line string) {
		if names = append(names, strings.Fields(line)[0]); len(names) == nodes {
			cancel()
		}
	}}, lineWriter{}
	code := root.Main(ctx, factory(t, &out, &errOut), []string{
		"nodes", "-w", "--sort-by=-node", "--no-headers", "--columns=node", "--concurrency=1", "--node-timeout=1m", "--kubeconfig=" + front.kubeconfig,
	})
	slices.Reverse(names)
	if code != 0 || len(names) < nodes || !slices.IsSorted(names[len(names)-nodes:]) {
		t.Errorf("exit %d, %d rows from the last to the first:\n%s\n%s", code, len(names), strings.Join(names, "\n"), errOut.String())
	}
}
