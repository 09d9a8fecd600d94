package live

import (
	"context"
	"errors"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet/inventory"
)

// historiesEvery is how often to look for subnets whose earlier counts were not read yet.
const historiesEvery = 2 * time.Second

// histories reads the earlier free counts of subnets: once all nodes were asked, and later those of new
// subnets. From then on the samples have them.
func (l *Live) histories(ctx context.Context) {
	known := map[string]bool{}
	for pause(ctx, historiesEvery) {
		if !l.Stats().Swept {
			continue
		}
		v := l.View()
		names := inventory.HistorySources(v, known)
		if len(names) == 0 {
			continue
		}
		var docs []introspect.NodeSubnetHistory
		for _, name := range names {
			if doc, err := l.historyOf(ctx, name); err == nil {
				docs = append(docs, doc)
			}
		}
		for _, n := range v.Nodes {
			if n.Summary == nil {
				continue
			}
			for _, s := range n.Summary.Subnets {
				known[s.ID] = known[s.ID] || s.HistorySince != nil
			}
		}
		l.opts.Store.Precede(inventory.MergeHistories(v, docs))
	}
}

// historyOf reads what one node kept.
func (l *Live) historyOf(ctx context.Context, name string) (introspect.NodeSubnetHistory, error) {
	d := &detail{l: l}
	d.out.Node = name
	l.mu.Lock()
	if d.m = l.members[name]; d.m != nil {
		d.source = d.m.source
	}
	l.mu.Unlock()
	if d.m == nil || d.m.reader == nil {
		return introspect.NodeSubnetHistory{}, &client.Error{Address: name, Reason: introspect.ReasonNotFound, Err: errors.New("it left")}
	}
	defer d.close()
	return ask(ctx, d, func(ctx context.Context, c *client.Client) (introspect.NodeSubnetHistory, error) {
		return c.SubnetHistory(ctx)
	})
}
