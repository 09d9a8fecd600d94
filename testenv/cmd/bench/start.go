package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cnictl/testenv/cmd/internal/figure"
	"cnictl/testenv/node/agent"
)

// startCost is the cost of starting a program.
type startCost struct {
	name     string
	wall     time.Duration // median of a run that only prints its version
	faults   int64         // median
	init     time.Duration // total of all package initialisations
	packages int           // number of packages with an initialisation
	size     int64         // of the binary, bytes
	peak     int64         // memory in bytes, the minimum of several runs
}

// programs are measured while they print their version.
var programs = []struct {
	name string
	args []string
	env  []string
}{
	{name: "aws-cni", env: []string{"CNI_COMMAND=VERSION"}},
	{name: "egress-cni", env: []string{"CNI_COMMAND=VERSION"}},
	{name: "grpc-health-probe"},
	{name: "cnictl", args: []string{"--version"}},
	{name: "aws-k8s-agent", args: []string{"--version"}},
}

// starts measures each program n times. The exit code does not matter: grpc-health-probe
// fails without arguments, but only after its start.
func starts(node machine, bin string, n int) ([]startCost, error) {
	var out []startCost
	for _, p := range programs {
		cmd := agent.Cmd{Argv: append([]string{filepath.Join(bin, p.name)}, p.args...), Env: p.env}
		c := startCost{name: p.name}
		var walls, faults []time.Duration
		for range n {
			r, err := node.Run(cmd)
			if err != nil {
				return nil, err
			}
			walls, faults = append(walls, r.Wall), append(faults, time.Duration(r.MinFault))
		}
		c.wall, c.faults = figure.Quantile(walls, 0.5), int64(figure.Quantile(faults, 0.5))
		info, err := os.Stat(cmd.Argv[0])
		if err != nil {
			return nil, err
		}
		c.size = info.Size()
		if c.peak, err = peakMemory(node, bin, cmd); err != nil {
			return nil, err
		}
		if err := c.traceInit(node, cmd, n); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// peakMemory returns the peak memory of a program: the minimum of several runs, because it
// varies with scheduling.
func peakMemory(node machine, bin string, cmd agent.Cmd) (least int64, _ error) {
	cmd.Argv = append([]string{filepath.Join(bin, "peak")}, cmd.Argv...)
	for range 5 {
		r, err := node.Run(cmd)
		if err != nil {
			return 0, err
		}
		peak, ok := readPeak(r.Stderr)
		if !ok {
			return 0, fmt.Errorf("%s: peak reported no memory: %q", cmd.Argv[1], r.Stderr)
		}
		if least == 0 || peak < least {
			least = peak
		}
	}
	return least, nil
}

// readPeak parses the last line that peak prints.
func readPeak(stderr []byte) (bytesHeld int64, ok bool) {
	at := bytes.LastIndex(stderr, []byte("\npeak_kib="))
	if at < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(stderr[at+len("\npeak_kib="):])), 10, 64)
	return n << 10, err == nil
}

// traceInit adds up the package initialisation times that the runtime reports, and keeps the
// minimum of several runs.
func (c *startCost) traceInit(node machine, cmd agent.Cmd, n int) error {
	cmd.Env = append([]string{"GODEBUG=inittrace=1"}, cmd.Env...)
	for i := range n {
		r, err := node.Run(cmd)
		if err != nil {
			return err
		}
		sum, packages := initTime(r.Stderr)
		if i == 0 || sum < c.init {
			c.init, c.packages = sum, packages
		}
	}
	if c.packages == 0 {
		return fmt.Errorf("%s: no trace of package initialisation", c.name)
	}
	return nil
}

// initTime parses lines like "init os @0.40 ms, 0.012 ms clock, 416 bytes, 9 allocs".
func initTime(trace []byte) (sum time.Duration, packages int) {
	for line := range bytes.Lines(trace) {
		f := strings.Fields(string(line))
		if len(f) < 6 || f[0] != "init" || f[5] != "ms" && f[5] != "clock," {
			continue
		}
		var at, took float64
		if _, err := fmt.Sscanf(strings.Join(f[2:5], " "), "@%f ms, %f", &at, &took); err != nil {
			continue
		}
		sum += time.Duration(took * float64(time.Millisecond))
		packages++
	}
	return sum, packages
}
