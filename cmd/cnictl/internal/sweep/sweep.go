package sweep

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// All reads all nodes with progress on standard error, and reports whether the user gave up.
func All(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet, q fleet.Query) (document.NodeIPAMList, bool) {
	deadline, cancel := f.DeadlineFor(ctx, len(nodes.Names()))
	defer cancel()
	p := newProgress(f)
	q.Progress = p.update
	list := nodes.Sweep(deadline, q)
	p.Erase()
	if deadline.Err() != nil && ctx.Err() == nil {
		f.Warn("timed out before all nodes had answered: raise --timeout (0: no limit), or read more nodes in parallel (--concurrency)")
	}
	completion.Remember(f, completion.Seen(list))
	return list, ctx.Err() != nil
}
