package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cnictl/testenv/node"
)

// restartWithin bounds a restart of the daemon on a busy machine.
const restartWithin = time.Minute

// killing kills the daemon repeatedly until the context ends.
func (s *soak) killing(ctx context.Context) {
	if s.killEvery == 0 {
		return
	}
	for {
		if wait(ctx, s.killEvery); ctx.Err() != nil {
			return
		}
		// The daemon must come back even if ctx ends meanwhile.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartWithin)
		err := s.restart(bounded)
		cancel()
		if err != nil {
			s.tally.mistake("the daemon does not come back: %s", err)
			return
		}
		s.tally.killed()
	}
}

// restart kills the daemon and waits for the next one.
func (s *soak) restart(ctx context.Context) error {
	killed, err := s.machine.KillDaemon()
	if err == nil && !s.kubeletRuns {
		err = s.cri.startAgain(ctx, "aws-node")
	}
	if err == nil {
		err = s.machine.AwaitDaemon(ctx, killed)
	}
	return err
}

// held holds a process's resource usage.
type held struct {
	rss   int // KiB
	files int
}

func (h held) String() string { return fmt.Sprintf("%d MB, %d files", h.rss>>10, h.files) }

// heldBy reads the daemon's resource usage.
func (s *soak) heldBy() (held, error) {
	pid, err := s.machine.Process(node.DaemonBinary)
	if err != nil {
		return held{}, err
	}
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	files, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return held{}, err
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return held{}, err
	}
	h := held{files: len(files)}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			h.rss, err = strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
		}
	}
	return h, err
}

// How much more an idle daemon may use than one that has just started: a larger checkpoint, and
// connections to EC2 and the API server.
const (
	moreRSS   = 40 << 10 // KiB
	moreFiles = 16
)

func (h held) grown(since held) error {
	if h.rss > since.rss+moreRSS || h.files > since.files+moreFiles {
		return fmt.Errorf("the daemon grew from %s to %s", since, h)
	}
	return nil
}
