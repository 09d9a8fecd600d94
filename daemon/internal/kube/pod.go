package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnictl/daemon/cluster"
)

// Pod returns a pod: the cached one, else what a GET answers. A cached pod that has
// ended is requested again, since a new one may have its name. Whoever knows better
// than the cache asks PodFresh.
func (c *Client) Pod(ctx context.Context, namespace, name string) (cluster.Pod, error) {
	if cached, ok, _ := c.pods.get(objectKey(namespace, name)); ok && !cached.Ended {
		return cached, nil
	}
	return c.podAnew(ctx, namespace, name)
}

// podAnew asks for a pod. The cache serves while the API server is away.
func (c *Client) podAnew(ctx context.Context, namespace, name string) (cluster.Pod, error) {
	pod, err := c.PodFresh(ctx, namespace, name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		if cached, ok, _ := c.pods.get(objectKey(namespace, name)); ok {
			return cached, nil
		}
	}
	return pod, err
}

// PodFresh returns a pod as the API server has it now, whatever the cache has. It is for
// callers who know that the cache is behind, since the pod that they mean has another
// UID; those who ask again pause in between.
func (c *Client) PodFresh(ctx context.Context, namespace, name string) (cluster.Pod, error) {
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
// was seen of it, and an error that is ctx's and names the obstacle.
func (c *Client) WaitPod(ctx context.Context, namespace, name string, ok func(cluster.Pod) bool) (cluster.Pod, error) {
	key := objectKey(namespace, name)
	var last cluster.Pod
	for read := c.Pod; ; {
		// Taken before the read, so that no change between the two is missed.
		next, live := c.pods.changed()
		cached, _, _ := c.pods.get(key)
		pod, err := read(ctx, namespace, name)
		if err == nil {
			last = pod
			if ok(pod) {
				return pod, nil
			}
			err = errors.New("it exists, but not in the expected state")
		}
		pause := c.pauses.blind
		if live {
			pause = c.pauses.reread
		}
		changed := c.awaitPod(ctx, key, cached, next, pause)
		if ctx.Err() != nil {
			return last, fmt.Errorf("wait for pod %s: %w; last: %w", key, ctx.Err(), err)
		}
		read = c.podAnew
		if changed {
			read = c.Pod
		}
	}
}

// awaitPod waits until the cached pod is another than it was, which is true, a pause is
// over or ctx ends. Changes of other pods do not end it.
func (c *Client) awaitPod(ctx context.Context, key string, was cluster.Pod, next <-chan struct{}, pause time.Duration) bool {
	timer := time.NewTimer(pause + c.pauses.Jittered(pause/2))
	defer timer.Stop()
	for {
		select {
		case <-next:
			next, _ = c.pods.changed()
			if pod, ok, _ := c.pods.get(key); ok && pod != was {
				return true
			}
		case <-timer.C:
			return false
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
