package sweep

import (
	"context"
	"slices"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
)

// Open is the way to the nodes named, all of them when none is.
func Open(ctx context.Context, f *cli.Factory, names []string) (*fleet.Fleet, error) {
	nodes, err := access.Fleet(ctx, f)
	if err != nil {
		return nil, err
	}
	known := nodes.Names()
	var whole []string
	for _, name := range names {
		full := access.WholeName(name, known)
		if !slices.Contains(known, full) {
			nodes.Close()
			return nil, access.NotFound(f, name, known)
		}
		whole = append(whole, full)
	}
	if len(whole) > 0 {
		nodes.Keep(whole)
	}
	return nodes, nil
}

// All reads all nodes with progress on standard error, and tells whether the user
// gave up meanwhile.
func All(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet, q fleet.Query) (introspect.NodeIPAMList, bool) {
	deadline, cancel := f.DeadlineFor(ctx, len(nodes.Names()))
	defer cancel()
	p := progress{f: f, start: f.Now()}
	q.Progress = p.update
	list := nodes.Sweep(deadline, q)
	p.erase()
	if deadline.Err() != nil && ctx.Err() == nil {
		f.Warn("the time was over before all nodes had answered: give more (--timeout=0 waits for each), or ask more at once (--concurrency)")
	}
	completion.Remember(f, completion.Seen(list))
	return list, ctx.Err() != nil
}
