package main

import (
	"strings"
	"testing"
	"time"

	"cnictl/testenv/kube/fleetsim"
)

// TestTerminal_ResizeStorm: if sizes change faster than frames are drawn, while the fleet changes,
// the final picture has the last size.
func TestTerminal_ResizeStorm(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 50, Seed: 1, Churn: 20 * time.Millisecond})
	kubeconfig, err := sim.WriteKubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := onTerminal(t, 120, []string{"KUBECONFIG=" + kubeconfig})
	x.await("a node", holds("ip-10-0-", 1))
	for i := range 200 {
		x.resize(1+i*37%250, i*13%70) // includes 0 rows
	}
	x.resize(59, 14)
	x.await("the line for a terminal that is too small", holds("60", 1))
	before := len(x.text())
	x.resize(120, 24)
	x.await("the list again", func(drawn string) bool { return strings.Contains(drawn[before:], "ip-10-0-") })
	x.press("q")
	if code := x.end(); code != 0 || !strings.Contains(x.text(), formerScreen) {
		t.Errorf("exit %d, %q", code, x.text()[before:])
	}
}
