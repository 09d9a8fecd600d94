package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cnictl/testenv/cmd/internal/figure"
)

// commandLimit bounds the duration of a command.
const commandLimit = 5 * time.Minute

// cnictl runs a command to its end.
func (s *session) cnictl(ctx context.Context, env []string, args ...string) (cmd *exec.Cmd, stdout, stderr []byte, wall time.Duration, err error) {
	return s.run(ctx, s.path("cnictl"), env, args...)
}

func (s *session) run(ctx context.Context, program string, env []string, args ...string) (cmd *exec.Cmd, stdout, stderr []byte, wall time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	cmd = exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	begin := time.Now()
	err = cmd.Run()
	wall = time.Since(begin)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == someUnread {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("run %s %s: %w: %s", filepath.Base(program), args[0], err, errOut.Bytes())
	}
	return cmd, out.Bytes(), errOut.Bytes(), wall, err
}

// someUnread is cnictl's exit status when some nodes could not be read.
const someUnread = 4

// times runs a command repeatedly and returns its processor times.
func (s *session) times(ctx context.Context, env []string, args ...string) ([]time.Duration, error) {
	var out []time.Duration
	for range s.runs {
		cmd, _, _, _, err := s.cnictl(ctx, env, args...)
		if err != nil {
			return nil, err
		}
		out = append(out, spent(cmd))
	}
	return out, nil
}

// Limits of a start, in milliseconds of processor time.
const (
	versionLimit = 15
	initLimit    = 12
	oneNodeLimit = 60
)

// start measures the cost of starting any command, and of reading one node.
func (s *session) start(ctx context.Context) (err error) {
	f, err := s.fleet(ctx, 1, "--targets", s.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	env := env(f.kubeconfig, s.dir)
	for _, c := range []struct {
		name  string
		limit float64
		args  []string
	}{
		{"cnictl version, CPU", versionLimit, []string{"version"}},
		{"cnictl nodes, one node through the API server, CPU", oneNodeLimit, []string{"nodes"}},
		{"cnictl nodes, one node by its socket, CPU", oneNodeLimit, []string{"nodes", "--targets", f.targets}},
	} {
		cpu, err := s.times(ctx, env, c.args...)
		if err != nil {
			return err
		}
		s.add(c.name+", least", "ms", figure.Milliseconds(figure.Quantile(cpu, 0))).aim(c.limit)
		s.add("the same, median", "ms", figure.Milliseconds(figure.Quantile(cpu, 0.5))).aim(c.limit)
	}
	least := time.Duration(-1)
	for range s.runs {
		_, _, trace, _, err := s.cnictl(ctx, append([]string{"GODEBUG=inittrace=1"}, env...), "version")
		if err != nil {
			return err
		}
		sum, packages := initTime(trace)
		if packages == 0 {
			return errors.New("no trace of package initialisation")
		}
		if least < 0 || sum < least {
			least = sum
		}
	}
	s.add("package initialisation, least", "ms", figure.Milliseconds(least)).aim(initLimit)
	return nil
}

// initTime parses lines like "init os @0.40 ms, 0.012 ms clock, 416 bytes, 9 allocs".
func initTime(trace []byte) (sum time.Duration, packages int) {
	for line := range bytes.Lines(trace) {
		var name string
		var at, took float64
		if _, err := fmt.Sscanf(string(line), "init %s @%f ms, %f ms clock", &name, &at, &took); err == nil {
			sum += time.Duration(took * float64(time.Millisecond))
			packages++
		}
	}
	return sum, packages
}

// sweep reads the whole fleet once, as a script does.
func (s *session) sweep(ctx context.Context, f *fleet) error {
	args := []string{"nodes", "--concurrency", "32", "-o", "custom-columns=NODE:.metadata.name,STATE:.state"}
	cmd, out, _, wall, err := s.cnictl(ctx, env(f.kubeconfig, s.dir), args...)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")[1:]
	unread := 0
	for _, l := range lines {
		if !strings.HasSuffix(strings.TrimSpace(l), " live") {
			unread++
		}
	}
	if len(lines) != f.nodes {
		return fmt.Errorf("%s lists %d of %d nodes", filepath.Base(cmd.Path), len(lines), f.nodes)
	}
	s.add(fmt.Sprintf("cnictl nodes, %d nodes, 32 at a time", f.nodes), "s", wall.Seconds()).aim(30)
	s.add("the same, CPU", "s", spent(cmd).Seconds())
	s.add("the same, nodes not read (0.5 % never answer)", "", float64(unread))
	return nil
}
