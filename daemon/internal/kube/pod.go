package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cnictl/daemon/cluster"
	"cnictl/daemon/kubeclient"
)

// Pod returns a pod from the cache, or else with a GET. A cached pod that has ended is
// requested again, since a new one may have its name. Callers who know that the cache is
// stale use PodFresh.
func (c *Client) Pod(ctx context.Context, namespace, name string) (cluster.Pod, error) {
	if cached, ok, _ := c.pods.get(objectKey(namespace, name)); ok && !cached.Ended {
		return cached, nil
	}
	return c.fetchPod(ctx, namespace, name)
}

// fetchPod requests a pod. During an outage of the API server it returns the cached one.
func (c *Client) fetchPod(ctx context.Context, namespace, name string) (cluster.Pod, error) {
	pod, err := c.PodFresh(ctx, namespace, name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		if cached, ok, _ := c.pods.get(objectKey(namespace, name)); ok {
			return cached, nil
		}
	}
	return pod, err
}

// PodFresh returns a pod from the API server, regardless of the cache. It is for callers
// who know that the cache is stale because it has another UID for their pod. Callers who
// retry pause in between.
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

// WaitPod waits until ok accepts the pod. If ctx ends first, it returns the pod as last
// seen and an error that wraps ctx's and names the obstacle.
func (c *Client) WaitPod(ctx context.Context, namespace, name string, ok func(cluster.Pod) bool) (cluster.Pod, error) {
	key := objectKey(namespace, name)
	var last cluster.Pod
	for read := c.Pod; ; {
		// Taken before the read, so that no change in between is missed.
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
		read = c.fetchPod
		if changed {
			read = c.Pod
		}
	}
}

// awaitPod waits until the cached pod differs from was, the pause is over or ctx ends. It
// returns true only in the first case. Changes of other pods do not end the wait.
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

// ExpectedPods counts the node's pods that match. known is false until the pods were
// listed once.
func (c *Client) ExpectedPods(match func(cluster.Pod) bool) (n int, known bool) {
	return c.pods.count(match)
}

// WatchedPods returns the node's pods that match, as the watch shows them at one moment. listed
// is false until the pods were listed once. current reports whether the watch shows a pod with
// the given state of its branch ENI: it shows changes in their order, so it then also shows
// what preceded that state.
func (c *Client) WatchedPods(match func(cluster.Pod) bool, of cluster.Pod) (all []cluster.Pod, listed, current bool) {
	all, own, listed := c.pods.selected(match, objectKey(of.Namespace, of.Name))
	return all, listed, listed && own.UID != "" && own.UID == of.UID && own.PodENI == of.PodENI
}

// ListPods requests the pods of a node, regardless of the cache.
func (c *Client) ListPods(ctx context.Context, node string) (all []cluster.Pod, _ error) {
	request := kubeclient.Request{Kind: pods.Kind, Selection: kubeclient.Selection{Fields: "spec.nodeName=" + node}}
	limits := kubeclient.Limits{Objects: maxItems, Within: c.limits.get}
	err := kubeclient.List(ctx, c.open, request, limits, func(raw json.RawMessage) error {
		if pod, err := parsePod(raw); err == nil { // as the watch leaves out what it cannot read
			all = append(all, pod)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, c.failed(err))
	}
	return all, nil
}
