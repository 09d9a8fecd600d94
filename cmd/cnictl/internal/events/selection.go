package events

import (
	"context"
	"sync"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/kube"
)

// narrowed reports whether only some nodes are requested, by arguments or by global flags.
func (o *options) narrowed(f *cli.Factory) bool {
	return len(o.Names) > 0 || len(f.Globals.Nodes) > 0 || f.Globals.Selector != ""
}

// selection is the set of nodes whose events are requested. Nodes may be added while events
// are followed. A node that leaves the cluster stays, since its events arrive later.
type selection struct {
	all bool

	mu    sync.Mutex // guards nodes
	nodes map[string]bool
}

// selected returns the requested nodes. A node that does not exist is an error.
func selected(ctx context.Context, f *cli.Factory, opts *options, api *kube.Cluster) (*selection, error) {
	s := &selection{all: api == nil || !opts.narrowed(f), nodes: map[string]bool{}}
	if s.all {
		return s, nil
	}
	nodes, err := access.FleetOf(ctx, f, opts.Names)
	if err != nil {
		return nil, err
	}
	defer nodes.Close()
	s.add(nodes)
	return s, nil
}

func (s *selection) add(nodes *fleet.Fleet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range nodes.Names() {
		s.nodes[name] = true
	}
}

// wants reports whether the events of a node are requested.
func (s *selection) wants(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all || s.nodes[node]
}

// size returns the number of nodes that were added.
func (s *selection) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nodes)
}
