package root

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/testenv/kube/fleetsim"
)

// TestNamed_AsksOnlyForThose: with names, the API server is asked only for these nodes and the
// daemon's pods on them, whatever the size of the cluster.
func TestNamed_AsksOnlyForThose(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 12, Seed: 7, Churn: -1})
	name := fleetsim.NodeName(3)
	for _, command := range []string{"nodes", "enis", "ips", "logs"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex // guards listed
			listed := map[string]int{}
			kubeconfig := altered(t, sim, func(kind string, object map[string]any) {
				mu.Lock()
				defer mu.Unlock()
				listed[kind]++
			}, nil)
			var out, errOut bytes.Buffer
			f := &cli.Factory{
				Streams: &cli.Streams{Out: &out, Err: &errOut, Size: func() (int, int) { return 80, 24 }}, Env: call{}.lookup, Name: "cnictl",
				Now: time.Now, LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{}, false },
			}
			if code := Main(t.Context(), f, []string{command, name, "--kubeconfig=" + kubeconfig, "--timeout=0", "--node-timeout=1m"}); code != cli.ExitOK {
				t.Fatalf("exit %d, %s", code, errOut.String())
			}
			mu.Lock()
			defer mu.Unlock()
			if listed["Node"] > 1 || listed["Pod"] > 1 || command != "logs" && !strings.Contains(out.String(), "ip-") {
				t.Errorf("for one node of 12 the API server listed %v\n%s", listed, out.String())
			}
		})
	}
}
