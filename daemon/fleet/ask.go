package fleet

import (
	"context"
	"slices"
	"sync"

	"cnictl/daemon/api/introspect/client"
)

// Ask calls ask, with the client, for each of the named nodes in that order; for all nodes if
// names is empty. Concurrency is bounded as in a sweep. It returns one error per node, nil on
// success. ask keeps what it reads; it is called from several goroutines, once per index.
func (f *Fleet) Ask(ctx context.Context, names []string, ask func(ctx context.Context, i int, t Target, c *client.Client) error) []error {
	nodes := f.nodes
	if len(names) > 0 {
		nodes = nil
		for _, name := range names {
			if i := slices.IndexFunc(f.nodes, func(n *Reader) bool { return n.target.Name == name }); i >= 0 {
				nodes = append(nodes, f.nodes[i])
			}
		}
	}
	errs := make([]error, len(nodes))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(f.opts.Concurrency, len(nodes)) {
		workers.Go(func() {
			for i := range next {
				errs[i] = f.ask(ctx, i, nodes[i], ask)
			}
		})
	}
	for i := range nodes {
		next <- i
	}
	close(next)
	workers.Wait()
	return errs
}

func (f *Fleet) ask(ctx context.Context, i int, n *Reader, ask func(context.Context, int, Target, *client.Client) error) error {
	if n.client == nil {
		return n.absence()
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.NodeTimeout)
	defer cancel()
	_, err := Recover(func() (struct{}, error) { return struct{}{}, ask(ctx, i, n.target, n.client) })
	return err
}
