package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/node"
)

// tenant is a living pod.
type tenant struct {
	address netip.Addr
	sandbox string // "" if kubelet created it
}

// ledger records which pod has which address. A tenant enters when its sandbox is up and
// leaves before anything starts to delete it, so in between nobody else may have its address.
type ledger struct {
	mu      sync.Mutex
	tenants map[string]tenant // by pod
}

func newLedger() *ledger { return &ledger{tenants: map[string]tenant{}} }

// enter adds a pod. It returns an error if another pod has its address.
func (l *ledger) enter(pod string, t tenant) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, has := range l.tenants {
		if has.address == t.address && other != pod {
			return fmt.Errorf("pods %s and %s both have %s", other, pod, t.address)
		}
	}
	l.tenants[pod] = t
	return nil
}

func (l *ledger) leave(pod string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tenants, pod)
}

func (l *ledger) living() map[string]tenant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.tenants)
}

// audit compares the living pods with the daemon's checkpoint and with EC2.
func (s *soak) audit() {
	living := s.ledger.living()
	book, err := s.machine.Allocations()
	if err != nil {
		s.tally.mistake("the checkpoint: %s", err)
		return
	}
	ours := func(a netip.Addr) bool {
		owner, ok := s.cluster.World.OwnerOf(a)
		return ok && owner.Attachment.InstanceID == s.machine.InstanceID
	}
	after := s.ledger.living() // a pod that has come or gone meanwhile may be in the checkpoint or not
	maps.DeleteFunc(living, func(pod string, t tenant) bool { return after[pod] != t })
	for _, m := range compare(living, book, ours) {
		s.tally.mistake("%s", m)
	}
}

// compare lists the differences between the living pods, the checkpoint and EC2.
func compare(living map[string]tenant, book []node.Allocation, ours func(netip.Addr) bool) (wrong []string) {
	holder := map[netip.Addr]string{}
	for _, a := range book {
		if other, ok := holder[a.Address()]; ok && other != a.ContainerID {
			wrong = append(wrong, fmt.Sprintf("the checkpoint assigns %s to both %.12s and %.12s", a.Address(), other, a.ContainerID))
		}
		holder[a.Address()] = a.ContainerID
	}
	for pod, t := range living {
		has, ok := holder[t.address]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("pod %s has %s, which the checkpoint assigns to no pod", pod, t.address))
		case t.sandbox != "" && has != t.sandbox:
			wrong = append(wrong, fmt.Sprintf("pod %s has %s, which the checkpoint assigns to %.12s", pod, t.address, has))
		}
		if !ours(t.address) {
			wrong = append(wrong, fmt.Sprintf("pod %s has %s, which belongs to no ENI of the node", pod, t.address))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// killing kills the daemon repeatedly until the context ends.
func (s *soak) killing(ctx context.Context) {
	if s.killEvery == 0 {
		return
	}
	every(ctx, s.killEvery, func() {
		// The daemon must come back even if ctx ends meanwhile.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		killed, err := s.machine.KillDaemon()
		if err == nil && !s.kubeletRuns {
			err = s.cri.startAgain(bounded, "aws-node")
		}
		if err == nil {
			err = s.machine.AwaitDaemon(bounded, killed)
		}
		if err != nil {
			s.tally.mistake("the daemon does not come back: %s", err)
		} else {
			s.tally.killed()
		}
	})
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
	rss, err := frame.Memory(pid, "VmRSS")
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return held{int(rss) >> 10, len(files)}, err
}

// grown returns an error if an idle daemon uses much more than one that has just started, which has
// no large checkpoint, and no connections to EC2 and the API server.
func (h held) grown(since held) error {
	const moreRSS, moreFiles = 40 << 10, 16
	if h.rss > since.rss+moreRSS || h.files > since.files+moreFiles {
		return fmt.Errorf("the daemon grew from %s to %s", since, h)
	}
	return nil
}

// leftovers lists what exists but did not before the first pod. The daemon notices a DEL that was
// lost in a crash at its next check of the sandboxes.
func (s *soak) leftovers() (left []string) {
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	defer cancel()
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
	if len(left) == 0 {
		frame.Check(err)
	}
	return left
}

func (s *soak) left(ctx context.Context) ([]string, error) {
	moment, cancel := context.WithCancel(ctx)
	cancel() // check once: the caller repeats it
	left, err := s.machine.Leftovers(moment)
	still, also := s.cri.list(ctx, running)
	if err := errors.Join(err, also); err != nil {
		return nil, err
	}
	left = append(left, still...)
	for _, e := range s.cluster.World.ENIs() {
		if e.Attachment.InstanceID != s.machine.InstanceID {
			left = append(left, "ENI "+e.ID+" without an owner")
		}
	}
	// containerd keeps the results of ADD until a DEL succeeds.
	err = filepath.WalkDir(s.machine.CNICache(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			left = append(left, "result of ADD "+filepath.Base(path))
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return left, err
}
