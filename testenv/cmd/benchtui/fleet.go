package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fleet is a simulated fleet in a separate process.
type fleet struct {
	nodes      int
	kubeconfig string
	targets    string // value of --targets; "" unless sockets were requested
	cmd        *exec.Cmd
}

// fleetLimit ends a fleet whose bench was killed.
const fleetLimit = time.Hour

// fleet starts a fleet. Its CPU time is not counted, but it shares the machine.
func (s *session) fleet(ctx context.Context, nodes int, args ...string) (*fleet, error) {
	dir, err := os.MkdirTemp(s.dir, "fleet-")
	if err != nil {
		return nil, err
	}
	f := &fleet{nodes: nodes, kubeconfig: filepath.Join(dir, "kubeconfig")}
	f.cmd = exec.CommandContext(ctx, s.path("fleetsim"), append([]string{
		"--nodes", strconv.Itoa(nodes), "--kubeconfig", f.kubeconfig, "--for", fleetLimit.String(),
	}, args...)...)
	f.cmd.Env = []string{"TMPDIR=" + dir}
	f.cmd.Stderr = os.Stderr
	f.cmd.Cancel = func() error { return f.cmd.Process.Signal(unix.SIGTERM) }
	f.cmd.WaitDelay = 10 * time.Second
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := f.cmd.Start(); err != nil {
		return nil, fmt.Errorf("run fleetsim: %w", err)
	}
	lines := bufio.NewReader(out) // a line may hold many targets
	want := 1
	for _, a := range args {
		if a == "--targets" {
			want++
		}
	}
	for i := range want {
		line, err := lines.ReadString('\n')
		if err != nil {
			_ = f.close()
			return nil, fmt.Errorf("start fleetsim: %w", err)
		}
		if i > 0 {
			f.targets = strings.TrimSpace(line)
		}
	}
	return f, nil
}

func (f *fleet) close() error {
	if err := f.cmd.Process.Signal(unix.SIGTERM); err != nil {
		return fmt.Errorf("end fleetsim: %w", err)
	}
	if err := f.cmd.Wait(); err != nil {
		return fmt.Errorf("end fleetsim: %w", err)
	}
	return nil
}
