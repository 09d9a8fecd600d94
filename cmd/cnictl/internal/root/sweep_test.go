package root

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/testenv/kube/fleetsim"
	"cnictl/testenv/text/tour"
)

// TestIPs_OfARecording: a recording has the addresses of some nodes only. If none of them has
// an address, another node may still have it.
func TestIPs_OfARecording(t *testing.T) {
	t.Parallel()
	w := &factWorld{recording: filepath.ToSlash(tour.Path(t, tour.File))}
	stdout, stderr, code := w.ran(t, []string{"ips", "--ip", "192.0.2.1"}, ofTour)
	if want := "the recording does not include the addresses of 1 of 30 nodes"; code != cli.ExitPartial || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, %q\n%s", code, stdout, stderr)
	}
}

// TestInterrupted: an interrupted command says how many nodes are missing.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 3, Seed: 5, Churn: -1, Named: map[string][]fleetsim.Trait{fleetsim.NodeName(1): {fleetsim.Dead}}})
	kubeconfig := altered(t, sim, func(string, map[string]any) {}, nil)
	for _, args := range []string{"nodes", "enis", "ips --ip 192.0.2.1", "status", "logs", "events --daemon"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out bytes.Buffer
			var hours atomic.Int64 // the clock advances by an hour with each look, so progress is always due
			// The dead node keeps the command running; the progress shows that the others answered.
			said := &until{what: "nodes 2/3", done: cancel}
			start := time.Now()
			f := &cli.Factory{
				Streams: &cli.Streams{Out: &out, Err: said, ErrTTY: true, Size: func() (int, int) { return 80, 24 }}, Env: call{}.lookup, Name: "cnictl",
				Now:         func() time.Time { return start.Add(time.Hour * time.Duration(hours.Add(1))) },
				LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{}, false },
			}
			code := Main(ctx, f, append(strings.Fields(args), "--kubeconfig="+kubeconfig, "--node-timeout=5m", "--timeout=0"))
			if want := "cnictl: interrupted: 1 of 3 nodes were not read\n"; code != cli.ExitInterrupted || !strings.HasSuffix(said.String(), want) {
				t.Errorf("exit %d, %q", code, said.String())
			}
		})
	}
}
