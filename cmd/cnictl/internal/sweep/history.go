package sweep

import (
	"context"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
)

// WithHistory adds the free counts of subnets that nodes kept before to a view of them.
func WithHistory(ctx context.Context, nodes *fleet.Fleet, v *store.View) *store.View {
	return v.WithReadings(Histories(ctx, nodes, v))
}

// Histories reads the free counts of the subnets of a view that nodes kept before, from a few nodes. What
// one of them does not answer is missing: the counts say how far they go back.
func Histories(ctx context.Context, nodes *fleet.Fleet, v *store.View) map[string]store.Readings {
	names := inventory.HistorySources(v, nil)
	if len(names) == 0 {
		return inventory.MergeHistories(v, nil) // Ask would ask all
	}
	docs := make([]introspect.NodeSubnetHistory, len(names))
	nodes.Ask(ctx, names, func(ctx context.Context, i int, _ fleet.Target, c *client.Client) (err error) {
		docs[i], err = c.SubnetHistory(ctx)
		return err
	})
	return inventory.MergeHistories(v, docs)
}
