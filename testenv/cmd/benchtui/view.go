package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// view runs the Go benchmarks of the root's View.
func (s *session) view(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark(Change|Key)$", "-benchmem", "-benchtime", s.rounds, "./tui/app")
	cmd.Dir = s.source
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGINT) } // it stops its children
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("run the benchmarks of tui/app: %w: %s", err, out)
	}
	found := benchmarks(out)
	change, ok := found["BenchmarkChange"]
	key, also := found["BenchmarkKey"]
	if !ok || !also {
		return fmt.Errorf("the benchmarks of tui/app are not in %q", out)
	}
	const nodes = 5000
	s.add(fmt.Sprintf("View after a change of data, filter and order, %d rows", nodes), "ms", change["ns/op"]/1e6).aim(5).beside(viewerFrame[nodes])
	s.add("the same, allocated", "MB", change["B/op"]/1e6).beside(3.8)
	s.add("the same, allocations", "", change["allocs/op"])
	s.add("View after a key, 5000 rows", "ms", key["ns/op"]/1e6).aim(5).beside(viewerFrame[nodes])
	return nil
}

// benchmarks parses the output of go test: "BenchmarkX-2  200  4100 ns/op  12 B/op".
func benchmarks(out []byte) map[string]map[string]float64 {
	found := map[string]map[string]float64{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(f[0], "-")
		found[name] = map[string]float64{}
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				found[name][f[i+1]] = v
			}
		}
	}
	return found
}
