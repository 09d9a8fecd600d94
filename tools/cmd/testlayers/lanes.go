package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// job is what a lane runs: a layer of tests, or a target of the Makefile.
type job struct {
	name string
	lane lane
	run  func(context.Context) (layerResult, error)
}

// runJobs runs the jobs that wait one after the other, and beside them, those that compute in the
// same way. When nothing is left that waits, two of the others run at a time. The results are in the
// order of the jobs. The first error ends everything.
func runJobs(ctx context.Context, jobs []job) ([]layerResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]layerResult, len(jobs))
	queues := [...]chan int{waits: make(chan int, len(jobs)), computes: make(chan int, len(jobs))}
	for i, j := range jobs {
		queues[j.lane] <- i
	}
	work := func(queue chan int) {
		for i := range queue {
			if ctx.Err() != nil {
				return
			}
			var err error
			if results[i], err = jobs[i].run(ctx); err != nil {
				cancel(err)
			}
		}
	}
	close(queues[waits])
	close(queues[computes])
	var lanes sync.WaitGroup
	lanes.Go(func() { work(queues[waits]); work(queues[computes]) })
	lanes.Go(func() { work(queues[computes]) })
	lanes.Wait()
	return results, context.Cause(ctx)
}

// command returns a command in the directory of the module, for a lane.
func (o options) command(ctx context.Context, l lane, name string, args ...string) *exec.Cmd {
	if nice, err := exec.LookPath("nice"); err == nil && l == computes {
		name, args = nice, append([]string{"-n", niceness, name}, args...)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = o.root
	// From a terminal, an interrupt reaches the whole process group. On SIGTERM, go test gets
	// time to end its children.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// logs is the directory for what targets print, below the module's.
const logs = ".cache/gate"

// runTarget runs a target of the Makefile and prints what it says if it fails. What the tests use
// is not built again below them.
func runTarget(ctx context.Context, o options, target string) (layerResult, error) {
	r := layerResult{name: target, target: true}
	path := filepath.Join(o.root, logs, target+".log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return r, fmt.Errorf("make directory for logs: %w", err)
	}
	log, err := os.Create(path)
	if err != nil {
		return r, fmt.Errorf("create log: %w", err)
	}
	defer log.Close()
	fmt.Printf("=== %s: see %s/%s.log\n", target, logs, target)
	cmd := o.command(ctx, computes, "make", "-o", "build", "-o", "reference", target)
	cmd.Stdout, cmd.Stderr = log, log
	start := time.Now()
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return r, fmt.Errorf("start make %s: %w", target, err)
	}
	r.took, r.cpu = time.Since(start), cpuTime(cmd.ProcessState)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		said, readErr := os.ReadFile(path)
		if readErr != nil {
			return r, fmt.Errorf("read log of make %s: %w", target, readErr)
		}
		r.failed, r.fails = 1, []string{"make " + target + ": " + err.Error()}
		fmt.Printf("--- make %s\n%s", target, said)
	}
	return r, nil
}

// cpuTime returns the CPU time of a process and of all children that were waited for.
func cpuTime(s *os.ProcessState) time.Duration { return s.UserTime() + s.SystemTime() }
