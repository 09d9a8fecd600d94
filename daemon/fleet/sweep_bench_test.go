package fleet_test

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/testenv/kube/fleetsim"
)

// simulated returns a simulator's nodes as targets that bypass its API server; connecting to
// each takes a while.
func simulated(sim *fleetsim.Sim, latency time.Duration) []fleet.Target {
	var targets []fleet.Target
	for _, n := range sim.Nodes() {
		targets = append(targets, fleet.Target{
			Name: n.Name, Via: document.ViaPortForward, Key: n.Name,
			Dial: func(ctx context.Context) (net.Conn, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(latency):
					return sim.DialNode(ctx, n.Name, fleetsim.IntrospectionPort)
				}
			},
		})
	}
	return targets
}

func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkSweep reads whole fleets. The last one must take at most 30 s. The CPU time
// includes the simulator's.
func BenchmarkSweep(b *testing.B) {
	for _, size := range []struct {
		nodes   int
		latency time.Duration
		dead    float64
	}{{100, 0, 0}, {1000, 0, 0}, {5000, 150 * time.Millisecond, 0.005}} {
		b.Run(fmt.Sprintf("%d-nodes-%dms", size.nodes, size.latency.Milliseconds()), func(b *testing.B) {
			sim := fleetsim.New(b, fleetsim.Options{
				Nodes: size.nodes, UpstreamShare: 0.2, Seed: 1, Churn: -1,
				Shares: map[fleetsim.Trait]float64{fleetsim.Dead: size.dead},
			})
			f, err := fleet.New(fleet.Options{Targets: simulated(sim, size.latency), Now: time.Now})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(f.Close)
			failed := 0
			cpu := processorTime(b)
			for b.Loop() {
				failed = 0
				for _, n := range f.Sweep(b.Context(), fleet.Query{}).Items {
					if fleet.Failed(n) {
						failed++
					}
				}
			}
			b.ReportMetric(float64((processorTime(b)-cpu).Microseconds())/float64(b.N)/float64(size.nodes), "cpu-µs/node")
			b.ReportMetric(float64(failed), "failed")
		})
	}
}
