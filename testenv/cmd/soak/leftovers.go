package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"cnictl/testenv/cluster"
)

// settleWithin bounds the clean-up after pods: the daemon notices a DEL that was
// lost in a crash at its next check of the sandboxes.
const settleWithin = 2 * time.Minute

// leftovers lists what exists but did not before the first pod.
func (s *soak) leftovers(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	var left []string
	err := cluster.Await(ctx, "everything to be gone", func() error {
		seen, err := s.left(ctx)
		if err != nil {
			return err // time may run out in the middle of a check: the previous result counts
		}
		if left = seen; len(left) > 0 {
			return fmt.Errorf("%d leftovers", len(left))
		}
		return nil
	})
	if len(left) > 0 {
		return left, nil
	}
	return nil, err
}

func (s *soak) left(ctx context.Context) ([]string, error) {
	moment, cancel := context.WithCancel(ctx)
	cancel() // check once: the caller repeats it
	left, err := s.machine.Leftovers(moment)
	if err != nil {
		return nil, err
	}
	still, err := s.cri.list(ctx, running)
	if err != nil {
		return nil, err
	}
	left = append(left, still...)
	chains, err := s.chains()
	if err != nil {
		return nil, err
	}
	for line := range chains {
		if !s.before[line] {
			left = append(left, "iptables: "+line)
		}
	}
	for _, e := range s.cluster.World.ENIs() {
		if e.Attachment.InstanceID != s.machine.InstanceID {
			left = append(left, "ENI "+e.ID+" without an owner")
		}
	}
	cached, err := s.cachedResults()
	return append(left, cached...), err
}

// chains returns the lines of iptables that are not kube-proxy's.
func (s *soak) chains() (map[string]bool, error) {
	lines := map[string]bool{}
	for _, program := range []string{"iptables-save", "ip6tables-save"} {
		text, err := s.machine.Output(program)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, ":") {
				line, _, _ = strings.Cut(line, " [") // counters
			}
			if line != "" && line[0] != '#' && !strings.Contains(line, "KUBE-") {
				lines[program+" "+line] = true
			}
		}
	}
	return lines, nil
}

// cachedResults lists the results of ADD that containerd keeps until a DEL succeeds.
func (s *soak) cachedResults() ([]string, error) {
	var left []string
	err := filepath.WalkDir(s.machine.CNICache(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			left = append(left, "result of ADD "+filepath.Base(path))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return left, nil
}
