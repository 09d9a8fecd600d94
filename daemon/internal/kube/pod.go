package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnictl/daemon/cluster"
)

// Periods after which a pod that is waited for is read anew: without an open watch
// nothing else shows a change; with one only what the watch cannot show, such as a pod
// of another node, or what a dead connection hides.
const (
	rereadBlind = time.Second
	reread      = 5 * time.Second
)

// Pod returns a pod: the cached one, else what a GET answers. A cached pod that has
// ended is asked for again, since a new one may have its name.
func (c *Client) Pod(ctx context.Context, namespace, name string) (cluster.Pod, error) {
	cached, ok, _ := c.pods.get(objectKey(namespace, name))
	if ok && !cached.Ended {
		return cached, nil
	}
	pod, err := c.getPod(ctx, namespace, name)
	if err != nil && ok && !errors.Is(err, ErrNotFound) {
		return cached, nil // the API server is away: the cache goes on serving
	}
	return pod, err
}

func (c *Client) getPod(ctx context.Context, namespace, name string) (cluster.Pod, error) {
	raw, err := c.getObject(ctx, pods, namespace, name)
	if err != nil {
		return cluster.Pod{}, err
	}
	pod, err := parsePod(raw)
	if err != nil {
		return cluster.Pod{}, fmt.Errorf("read pod %s/%s: %w", namespace, name, err)
	}
	return pod, nil
}

// WaitPod waits until a pod is as wanted. When ctx ends first it returns the last that
// was seen of it, and an error that is ctx's and tells what was in the way.
func (c *Client) WaitPod(ctx context.Context, namespace, name string, ok func(cluster.Pod) bool) (cluster.Pod, error) {
	key := objectKey(namespace, name)
	var last cluster.Pod
	for {
		// Taken before the look, so that no change between the two is missed.
		next, live := c.pods.changed()
		pod, err := c.Pod(ctx, namespace, name)
		if err == nil {
			last = pod
			if ok(pod) {
				return pod, nil
			}
			err = errors.New("it is there, but not as wanted")
		}
		pause := rereadBlind
		if live {
			pause = reread
		}
		if !c.awaitPod(ctx, key, last, next, pause) {
			return last, fmt.Errorf("wait for pod %s: %w; last: %w", key, ctx.Err(), err)
		}
	}
}

// awaitPod waits until the cached pod differs from the last one seen, a pause is over
// or ctx ends, which is false. Changes of other pods do not end it.
func (c *Client) awaitPod(ctx context.Context, key string, last cluster.Pod, next <-chan struct{}, pause time.Duration) bool {
	timer := time.NewTimer(pause/2 + c.pauses.chance(pause/2+1))
	defer timer.Stop()
	for {
		select {
		case <-next:
			next, _ = c.pods.changed()
			if pod, ok, _ := c.pods.get(key); ok && pod != last {
				return true
			}
		case <-timer.C:
			return ctx.Err() == nil
		case <-ctx.Done():
			return false
		}
	}
}

// ExpectedPods counts the node's pods that match. known is false until the watch has
// shown them once.
func (c *Client) ExpectedPods(match func(cluster.Pod) bool) (n int, known bool) {
	return c.pods.count(match)
}
