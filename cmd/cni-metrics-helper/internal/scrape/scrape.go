package scrape

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/cmd/cni-metrics-helper/internal/aggregate"
	"cnictl/daemon/kubeclient"
)

// Skip is a pod that was not read.
type Skip struct {
	Pod    string
	Reason Reason
	Err    error
}

// Read scrapes pods concurrently, until ctx ends. It returns the readings by UID, and the
// skipped pods. Pods at the end may not be reached, so callers should vary the order.
func (c *Client) Read(ctx context.Context, pods []Pod) (map[string]aggregate.Reading, []Skip) {
	var (
		mu       sync.Mutex // guards readings and skipped
		readings = make(map[string]aggregate.Reading, len(pods))
		skipped  []Skip
	)
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, p := range pods {
		group.Go(func() error {
			r, err := c.scrapeInTime(ctx, p.Name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				skipped = append(skipped, Skip{p.Name, reasonOf(err), err})
			} else {
				readings[p.UID] = r
			}
			return nil
		})
	}
	_ = group.Wait() // a failed scrape does not fail the others
	return readings, skipped
}

func (c *Client) scrapeInTime(ctx context.Context, pod string) (aggregate.Reading, error) {
	if err := ctx.Err(); err != nil {
		return aggregate.Reading{}, faultf(NotReached, "the poll ended: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.scrape(ctx, pod)
}

// textFormat is the only format that Parse reads.
const textFormat = "text/plain;version=0.0.4"

func (c *Client) scrape(ctx context.Context, pod string) (aggregate.Reading, error) {
	resp, err := c.get(ctx, textFormat, nil, kubeclient.Pods.Path(namespace, pod+":"+port, "proxy", "metrics"))
	if err != nil {
		return aggregate.Reading{}, err
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		return aggregate.Reading{}, faultf(Refused, "%w; the Role kube-system/cni-metrics-helper must allow get of pods/proxy", answered(resp))
	case code >= 300 && code < 400:
		return aggregate.Reading{}, faultf(Malformed, "answered %s, which is not followed", resp.Status)
	default:
		return aggregate.Reading{}, faultf(Unreachable, "%w", answered(resp))
	}
	r, err := Parse(resp.Body)
	if err != nil {
		return aggregate.Reading{}, fmt.Errorf("read metrics: %w", err)
	}
	// When the client is gone, a server may still end its response properly, and half of it
	// would pass for a complete one.
	if err := ctx.Err(); err != nil {
		return aggregate.Reading{}, fmt.Errorf("read metrics: %w", err)
	}
	r.At = time.Now()
	return r, nil
}
