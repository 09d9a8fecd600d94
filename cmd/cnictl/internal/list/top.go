package list

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// NewTop builds cnictl top: what each node does per minute.
func NewTop(f *cli.Factory) *cobra.Command {
	l := topList()
	return Command[document.RateItem]{List: l, Rows: rates, Document: rateDocument, Follow: ratesFollowed(l)}.Build(f, &cobra.Command{
		Use:   "top [NODE…]",
		Short: "Show what each node does per minute: ADDs, DELs, failures, EC2 calls",
		Long: `Show the rates of each node per minute: ADDs, failed ADDs, DELs, EC2 calls and failed EC2
calls. They are measured over --interval, with --watch and in recordings over up to a minute.
OVER shows how long: one event in 10 s is 6 per minute. Nodes with failures come first.
Upstream's daemon does not report these rates (see node metrics), and a daemon that has just
restarted has none yet.`,
		Example: "  " + f.Name + " top\n  " + f.Name + " top -w --filter 'ec2>0'",
	})
}

// rates reads the nodes once more, for the rates between both readings. Those of a recording are
// in it.
func rates(ctx context.Context, f *cli.Factory, r *Reading) ([]document.RateItem, error) {
	if f.Recording != nil {
		names := r.Nodes.Names()
		r.NodeIPAMList = document.NodeIPAMList{Errors: []document.NodeError{}, SampledAt: f.Now().UTC()}
		rows := ratesOf(f.Recording.View())
		return slices.DeleteFunc(rows, func(r document.RateItem) bool { return !slices.Contains(names, r.Node) }), nil
	}
	known := store.New()
	put := func() {
		for _, n := range r.Items {
			known.Put(n)
		}
	}
	put()
	if !r.Interrupted && wait(ctx, f) {
		r.NodeIPAMList, r.Interrupted = sweep.All(ctx, f, r.Nodes, fleet.Query{})
		put()
	}
	r.Interrupted = r.Interrupted || ctx.Err() != nil
	return ratesOf(known.View()), nil
}

func rateDocument(r *Reading, items []document.RateItem) any {
	return document.RateList{
		APIVersion: introspect.APIVersion, Kind: document.KindRateList, Items: items,
		Partial: r.Partial, Errors: r.Errors, SampledAt: r.SampledAt,
	}
}

// ratesFollowed redraws the rates every interval.
func ratesFollowed(l *output.List[document.RateItem]) func(context.Context, *cli.Factory, []string) error {
	return func(ctx context.Context, f *cli.Factory, names []string) error {
		first := true
		screen := output.NewScreen(f)
		inPlace := f.Streams.OutTTY && !output.Structured(f)
		var rows []document.RateItem
		return follow.Fleet(ctx, f, follow.Options{
			Names: names, Whole: true,
			Show: func(now follow.Moment) error {
				rows = ratesOf(now.View)
				if !inPlace {
					follow.Left(f, now.Gone)
				}
				if first {
					first = false
					return nil // no rates yet
				}
				return l.Redraw(f, screen, rows)
			},
			Redraw: func(time.Duration) error {
				if rows == nil || !f.Streams.OutTTY {
					return nil
				}
				return l.Redraw(f, screen, rows)
			},
		})
	}
}

// wait waits until the second reading is due; false if the user gave up.
func wait(ctx context.Context, f *cli.Factory) bool {
	ticks, stop := f.Tick(f.Globals.Interval)
	defer stop()
	select {
	case <-ctx.Done():
		return false
	case <-ticks:
		return true
	}
}

func ratesOf(v *store.View) []document.RateItem {
	items := []document.RateItem{}
	for _, n := range v.Nodes {
		items = append(items, rateItem(n))
	}
	return items
}
