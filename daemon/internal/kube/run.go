package kube

import (
	"context"
	"log/slog"
	"sync"

	"cnictl/daemon/api/logline"
)

// Run watches the objects that Options select, monitors whether the API server is up and
// sends the events of EmitLater, until ctx ends. Call it once.
func (c *Client) Run(ctx context.Context, on Changes) {
	var group sync.WaitGroup
	for _, work := range c.work() {
		group.Go(func() { work(ctx) })
	}
	for ctx.Err() == nil {
		select {
		case <-c.changes.ready:
			c.deliver(on)
		case <-ctx.Done():
		}
	}
	group.Wait()
}

// work returns the functions that Run starts as goroutines.
func (c *Client) work() []func(context.Context) {
	out := []func(context.Context){c.probe, c.sendEvents}
	if c.opts.ENIConfigs {
		out = append(out, follow(c, eniConfigs, "", parseENIConfig, c.eniConfigs, eniConfigsChanged))
	}
	if c.opts.NodeName == "" {
		c.log.Warn("MY_NODE_NAME is not set: neither the Node nor its pods are watched")
		return out
	}
	out = append(out, follow(c, nodes, "metadata.name="+c.opts.NodeName, parseNode, c.nodes, nodeChanged))
	if c.opts.Pods {
		out = append(out, follow(c, pods, "spec.nodeName="+c.opts.NodeName, parsePod, c.pods, podsChanged))
	}
	if c.opts.CNINode {
		out = append(out, follow(c, cniNodes, "metadata.name="+c.opts.NodeName, parseCNINode, c.cniNodes, cniNodeChanged))
	}
	return out
}

// follow returns a goroutine's function that keeps a store in sync with the objects that a
// field selector selects; "" = all.
func follow[T any](c *Client, what resource, fields string, parse func([]byte) (T, error), into *store[T], kind change) func(context.Context) {
	m := &mirror[T]{
		c: c, what: what, parse: parse, store: into,
		log:     c.log.With(slog.String(logline.KeySource, what.Plural)),
		changed: func() { c.changes.note(kind) },
	}
	return func(ctx context.Context) { _ = m.follower(fields).Run(ctx) } // it never gives up
}
