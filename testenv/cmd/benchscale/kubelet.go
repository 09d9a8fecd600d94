package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cnictl/testenv/node"
)

// kubelet starts pods on a node as a kubelet and its runtime do.
type kubelet struct {
	node      *node.Node
	namespace string
	atATime   int // sandboxes in parallel
}

// After a failed sandbox kubelet creates a new one, a second or more later.
const (
	sandboxAgain = time.Second
	sandboxTries = 60
)

// launched is the result of starting some pods.
type launched struct {
	pods   []*node.Pod
	failed []error // ADDs
	took   time.Duration
}

// launch runs pods whose names come from a channel, until the channel is closed.
func (k kubelet) launch(ctx context.Context, names <-chan string) (launched, error) {
	var out launched
	var mu sync.Mutex // guards out and errs
	var errs []error
	var wg sync.WaitGroup
	begin := time.Now()
	for range k.atATime {
		wg.Go(func() {
			for name := range names {
				p, failed, err := k.pod(ctx, name)
				mu.Lock()
				out.failed = append(out.failed, failed...)
				if err != nil {
					errs = append(errs, err)
				} else {
					out.pods = append(out.pods, p)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	out.took = time.Since(begin)
	return out, errors.Join(errs...)
}

// pod starts one pod, with a new sandbox after each failed one.
func (k kubelet) pod(ctx context.Context, name string) (*node.Pod, []error, error) {
	var failed []error
	for range sandboxTries {
		if err := ctx.Err(); err != nil {
			return nil, failed, err
		}
		p, err := k.node.AddPod(node.PodSpec{Namespace: k.namespace, Name: name})
		if err == nil {
			return p, failed, nil
		}
		if refused := (*node.PluginError)(nil); !errors.As(err, &refused) {
			return nil, failed, err
		}
		failed = append(failed, err)
		pause(ctx, sandboxAgain)
	}
	return nil, failed, fmt.Errorf("pod %s: %d ADDs failed, the last: %w", name, sandboxTries, failed[sandboxTries-1])
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func podName(i int) string { return fmt.Sprintf("pod-%d", i) }

// queued returns the names of n pods, all at once.
func queued(n int) <-chan string {
	names := make(chan string, n)
	for i := range n {
		names <- podName(i)
	}
	close(names)
	return names
}

// paced returns the names of n pods, one per period.
func paced(ctx context.Context, n int, every time.Duration) <-chan string {
	names := make(chan string)
	go func() { // ends with ctx or after n periods
		defer close(names)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := range n {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			select {
			case <-ctx.Done():
				return
			case names <- "paced-" + podName(i):
			}
		}
	}()
	return names
}
