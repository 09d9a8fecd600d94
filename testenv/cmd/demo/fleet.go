package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"cnictl/testenv/kube/fleetsim"
)

const (
	fleetLatency = 40 * time.Millisecond // about that of a cluster in a neighbouring region
	nodesHead    = 20                    // lines of cnictl nodes that are shown without a terminal
	fleetLimit   = 3 * time.Minute       // for a command that reads the whole fleet
)

// fleet shows a simulated fleet: a third of it runs upstream, and each kind of fault occurs on
// a few nodes.
func fleet(ctx context.Context, o options, dir string, out io.Writer) error {
	few := map[fleetsim.Trait]float64{fleetsim.Flapping: 0.01, fleetsim.Fargate: 0.01, fleetsim.Windows: 0.01}
	for _, t := range fleetsim.Traits() {
		if few[t] == 0 && t != fleetsim.Upstream && t != fleetsim.Endless {
			few[t] = 0.002
		}
	}
	if o.fleet < 100 { // otherwise a small fleet would have one node of each
		few = map[fleetsim.Trait]float64{fleetsim.Dead: 1 / float64(o.fleet)}
	}
	begin := time.Now()
	sim, err := fleetsim.Start(fleetsim.Options{Nodes: o.fleet, Seed: 1, UpstreamShare: 0.3, Latency: fleetLatency, Shares: few})
	if err != nil {
		return err
	}
	defer sim.Close()
	path, err := sim.WriteKubeconfig(dir)
	if err != nil {
		return err
	}
	env := []string{"KUBECONFIG=" + path}
	fmt.Fprintf(out, "%d simulated nodes behind an API server's front after %d ms\n", o.fleet, time.Since(begin).Milliseconds())
	fmt.Fprintf(out, "From another terminal:\n  export KUBECONFIG=%s\n  kubectl get nodes -w\n  %s nodes -w\n\n", path, filepath.Join(o.bin, cnictlBinary))
	if onTerminal() {
		return show(ctx, o.bin, o.lifeline, env, "tui")
	}
	if err := read(ctx, o.bin, env, out, 0, "status"); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return read(ctx, o.bin, env, out, nodesHead, "nodes")
}

// someUnread is cnictl's exit status when some nodes could not be read. In this fleet some
// never can be.
const someUnread = 4

// read prints the output of a cnictl command about the fleet, all of it or the first lines.
func read(ctx context.Context, bin string, env []string, out io.Writer, head int, command string) error {
	ctx, cancel := context.WithTimeout(ctx, fleetLimit)
	defer cancel()
	fmt.Fprintf(out, "$ cnictl %s\n", command)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, cnictlBinary), command)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	text, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run cnictl %s: %w", command, err)
	}
	n := 0
	for lines := bufio.NewScanner(text); lines.Scan(); n++ {
		if head == 0 || n <= head {
			fmt.Fprintln(out, lines.Text())
		}
	}
	if head > 0 && n > head+1 {
		fmt.Fprintf(out, "… and %d more lines\n", n-head-1)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err == nil || (errors.As(err, &exit) && exit.ExitCode() == someUnread) || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return nil
	}
	return fmt.Errorf("run cnictl %s: %w", command, err)
}
