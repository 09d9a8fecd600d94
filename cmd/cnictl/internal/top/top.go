package top

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// Options are the arguments and flags of top.
type Options struct {
	Names []string // of nodes; none: all
	List  *output.List[document.RateItem]
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	opts := &Options{List: newList()}
	return opts.List.Command(f, &cobra.Command{
		Use:   "top [NODE…]",
		Short: "Show what each node does per minute: ADDs, DELs, failures, EC2 calls",
		Long: `Show the rates of each node per minute: ADDs, failed ADDs, DELs, EC2 calls and failed EC2
calls. They are measured over --interval, with --watch and in recordings over up to a minute.
OVER shows how long: one event in 10 s is 6 per minute. Nodes with failures come first.
Upstream's daemon does not report these rates (see node metrics), and a daemon that has just
restarted has none yet.`,
		Example: "  " + f.Name + " top\n  " + f.Name + " top -w --filter 'ec2>0'",
	}, func(ctx context.Context, args []string) error {
		opts.Names = args
		return Run(ctx, f, opts)
	})
}

// Run reads twice and prints the rates, or follows them until ctx ends.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	if opts.List.Watching() {
		return opts.follow(ctx, f)
	}
	nodes, err := access.FleetOf(ctx, f, opts.Names)
	if err != nil {
		return err
	}
	defer nodes.Close()
	if f.Recording != nil {
		return recorded(f, opts, nodes.Names())
	}
	s := &sampler{store: store.New()}
	list, interrupted := sweep.All(ctx, f, nodes, fleet.Query{})
	s.put(list)
	if !interrupted && wait(ctx, f) {
		list, interrupted = sweep.All(ctx, f, nodes, fleet.Query{})
		s.put(list)
	}
	interrupted = interrupted || ctx.Err() != nil
	err = opts.List.Print(f, s.rows(), func(items []document.RateItem) any {
		return document.RateList{
			APIVersion: introspect.APIVersion, Kind: document.KindRateList, Items: items, Partial: list.Partial, Errors: list.Errors, SampledAt: list.SampledAt,
		}
	})
	if err != nil {
		return err
	}
	return sweep.Verdict(f, list, interrupted)
}

// follow redraws the rates every interval, until ctx ends.
func (opts *Options) follow(ctx context.Context, f *cli.Factory) error {
	first := true
	screen := output.NewScreen(f)
	inPlace := f.Streams.OutTTY && !output.Structured(f)
	var rows []document.RateItem
	return follow.Fleet(ctx, f, follow.Options{
		Names: opts.Names, Whole: true,
		Show: func(now follow.Moment) error {
			rows = ratesOf(now.View)
			if !inPlace {
				follow.Left(f, now.Gone)
			}
			if first {
				first = false
				return nil // no rates yet
			}
			return opts.List.Redraw(f, screen, rows)
		},
		Redraw: func(time.Duration) error {
			if rows == nil || !f.Streams.OutTTY {
				return nil
			}
			return opts.List.Redraw(f, screen, rows)
		},
	})
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

// sampler computes rates from readings.
type sampler struct{ store *store.Store }

func (s *sampler) put(list document.NodeIPAMList) {
	for _, n := range list.Items {
		s.store.Put(n)
	}
}

func (s *sampler) rows() []document.RateItem { return ratesOf(s.store.View()) }

func ratesOf(v *store.View) []document.RateItem {
	items := []document.RateItem{}
	for _, n := range v.Nodes {
		items = append(items, item(n))
	}
	return items
}

// recorded prints the rates that a recording has at one time for the named nodes.
func recorded(f *cli.Factory, opts *Options, names []string) error {
	rows := slices.DeleteFunc(ratesOf(f.Recording.View()), func(r document.RateItem) bool { return !slices.Contains(names, r.Node) })
	return opts.List.Print(f, rows, func(items []document.RateItem) any {
		return document.RateList{
			APIVersion: introspect.APIVersion, Kind: document.KindRateList, Items: items, Errors: []document.NodeError{}, SampledAt: f.Now().UTC(),
		}
	})
}
